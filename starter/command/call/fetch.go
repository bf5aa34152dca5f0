package call

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func Fetch(a *cli.App) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "fetch [flags] RUN ID...",
		Short: "Print the values of closures",
		Long: `Prints the values of closures as JSON, one per line, in the order of the IDs. It waits for
closures that have not ended. Values are available for as long as the server keeps the
history of the run's queue, even long after the run has ended.

` + exitCodesOfClosures,
		Example: `  clusterrun fetch iris-x2k4 1 2 3
  clusterrun fetch iris-x2k4 $(clusterrun schedule iris-x2k4 evaluate)`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return cli.Usagef("ID is missing; usage: %s", cmd.UseLine())
			}
			return cli.SomeArgs(2, "RUN")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runFetch(cmd.Context(), a, args, timeout) },
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after `TIME`")
	return cmd
}

// runFetch implements [Fetch].
func runFetch(ctx context.Context, a *cli.App, args []string, timeout time.Duration) error {
	ids := make([]uint64, 0, len(args)-1)
	for _, arg := range args[1:] {
		id, err := strconv.ParseUint(arg, 10, 64)
		if err != nil || id == 0 {
			return cli.Usagef("%q is not the ID of a closure; want a number from 1, as `clusterrun schedule` prints it", arg)
		}
		ids = append(ids, id)
	}
	return withQueue(ctx, a, args[0], access{attach: existing, timeout: timeout, waits: true}, func(ctx context.Context, q *closurequeue.Queue) error {
		remotes, err := q.FetchAll(ctx, ids...)
		if err != nil {
			return err
		}
		for i, r := range remotes {
			value, err := r.Wait(ctx)
			if err != nil {
				return err
			}
			if err := printValue(a, ids[i], value); err != nil {
				return err
			}
		}
		return nil
	})
}

func Join(a *cli.App) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "join [flags] RUN",
		Short: "Wait until all closures of a run have been called",
		Long: `Waits until nothing is queued or executing, including detached closures, such as that of a
schedule --wait. If a closure has failed, everything queued is cancelled, executing
closures are told to end, and the first error is printed once nothing executes any more;
then the queue is as new.

` + exitCodesOfClosures,
		Example: `  clusterrun join iris-x2k4
  clusterrun join iris-x2k4 --timeout 10m`,
		Args: cli.OneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withQueue(cmd.Context(), a, args[0], access{attach: existing, timeout: timeout, waits: true}, func(ctx context.Context, q *closurequeue.Queue) error {
				if err := q.JoinAll(ctx); err != nil && !errors.Is(err, closurequeue.ErrNoQueue) {
					return err
				}
				if a.Global.JSON {
					return a.PrintJSON(map[string]any{"run_id": args[0], "done": true})
				}
				return nil
			})
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after `TIME`; the closures continue")
	return cmd
}

func Done(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "done [flags] RUN",
		Short: "Report whether all closures of a run have been called",
		Long: `Reports whether nothing is queued or executing, including detached closures. If a closure
failed, this does what join does.

Exit codes:
  0    done
  1    not done
  2    mistake in the command line
  3    a closure failed; its error is on stderr
  125  the server, or the queue, could not do it`,
		Example: `  until clusterrun done iris-x2k4; do sleep 10; done`,
		Args:    cli.OneArg("RUN"),
		RunE:    func(cmd *cobra.Command, args []string) error { return runDone(cmd.Context(), a, args) },
	}
}

// runDone implements [Done].
func runDone(ctx context.Context, a *cli.App, args []string) error {
	done := false
	err := withQueue(ctx, a, args[0], access{attach: existing}, func(ctx context.Context, q *closurequeue.Queue) error {
		var err error
		if done, err = q.AllDone(ctx); errors.Is(err, closurequeue.ErrNoQueue) {
			done, err = true, nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if a.Global.JSON {
		err = a.PrintJSON(map[string]any{"run_id": args[0], "done": done})
	} else {
		_, err = fmt.Fprintln(a.Out, map[bool]string{true: "done", false: "not done"}[done])
	}
	if err == nil && !done {
		err = &cli.ExitError{Code: 1}
	}
	return err
}
