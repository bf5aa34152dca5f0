package call

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// waitTimeout is the flag for the longest time that a command waits for calls. 0 means no
// limit.
type waitTimeout time.Duration

func (w *waitTimeout) register(cmd *cobra.Command, usage string) {
	cmd.Flags().DurationVar((*time.Duration)(w), "wait-timeout", 0, usage)
}

func waitCommand(a *cli.App) *cobra.Command {
	var timeout waitTimeout
	cmd := &cobra.Command{
		Use:   "wait [flags] RUN",
		Short: "Wait until all calls of a run have ended",
		Args:  cli.OneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("wait-timeout") && timeout == 0 {
				return reportDone(cmd.Context(), a, args[0])
			}
			return waitForAll(cmd.Context(), a, args[0], time.Duration(timeout))
		},
	}
	timeout.register(cmd, "give up after `TIME`; the calls continue")
	return cmd
}

// waitForAll waits until all calls of a run have ended.
func waitForAll(ctx context.Context, a *cli.App, run string, timeout time.Duration) error {
	return withQueue(ctx, a, run, access{attach: existing, timeout: timeout, waits: true}, func(ctx context.Context, q *closurequeue.Queue) error {
		if err := q.JoinAll(ctx); err != nil && !errors.Is(err, closurequeue.ErrNoQueue) {
			return err
		}
		return printDone(a, run, true)
	})
}

// reportDone reports whether all calls of a run have ended.
func reportDone(ctx context.Context, a *cli.App, run string) error {
	done := false
	err := withQueue(ctx, a, run, access{attach: existing}, func(ctx context.Context, q *closurequeue.Queue) error {
		var err error
		if done, err = q.AllDone(ctx); errors.Is(err, closurequeue.ErrNoQueue) {
			done, err = true, nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := printDone(a, run, done); err != nil || done {
		return err
	}
	a.Say("run %s: not all calls have ended", run)
	return &cli.ExitError{Code: exitcode.Timeout}
}

func printDone(a *cli.App, run string, done bool) error {
	if !a.Global.JSON {
		return nil
	}
	return a.PrintJSON(map[string]any{"run_id": run, "done": done})
}
