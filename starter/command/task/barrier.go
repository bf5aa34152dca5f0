package task

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

func taskBarrierCommand(a *cli.App) *cobra.Command {
	var o taskBarrierOptions

	cmd := &cobra.Command{
		Use:   "barrier [flags] [NAME]",
		Short: "Wait until all tasks have arrived at a barrier",
		Args:  fromToArgs(0, 1, "NAME"),
		RunE:  func(cmd *cobra.Command, args []string) error { return runTaskBarrier(cmd.Context(), a, cmd, args, &o) },
	}
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "wait at most this `TIME`, such as 30s; default: no limit")
	cmd.Flags().StringSliceVar(&o.participants, "task", nil, "`NAME` of a participant, or a type for all its tasks; may be repeated. Default: all tasks of the spec")
	cmd.Flags().BoolVar(&o.local, "local", false, "let the host release it without the server, in microseconds; requires all participants on this host. In a run with local barriers, every barrier is local")
	return cmd
}

// taskBarrierOptions holds the flags of [taskBarrierCommand].
type taskBarrierOptions struct {
	timeout      time.Duration
	participants []string
	local        bool
}

// runTaskBarrier implements [taskBarrierCommand].
func runTaskBarrier(ctx context.Context, a *cli.App, cmd *cobra.Command, args []string, o *taskBarrierOptions) error {
	t, err := currentTask()
	if err != nil {
		return err
	}
	name := "default"
	if len(args) == 1 {
		name = args[0]
	}
	options := []task.Option{task.Participants(o.participants...)}
	if o.local {
		options = append(options, task.Local())
	}
	if cmd.Flags().Changed("timeout") {
		if o.timeout < 0 {
			return cli.Usagef("--timeout %s is negative; use a duration such as 30s", o.timeout)
		}
		options = append(options, task.Timeout(o.timeout))
	}
	// This withdraws the arrival before the process exits.
	ctx, stop := cli.EndedBy(ctx)
	defer stop()
	r, err := t.Barrier(ctx, name, options...)
	if err != nil {
		return barrierError(err)
	}
	if a.Global.JSON {
		return a.PrintJSON(r)
	}
	return nil
}

func barrierError(err error) error {
	var broken *task.BarrierError
	var refused *task.APIError
	switch {
	case errors.As(err, &broken) && broken.Timeout:
		return &cli.ExitError{Code: exitcode.Timeout, Cause: err}
	case errors.As(err, &broken):
		return &cli.ExitError{Code: exitBroken, Cause: err}
	case errors.As(err, &refused) && refused.Field != "":
		return cli.Usagef("%s", refused.Message)
	case errors.Is(err, context.Canceled):
		return &cli.ExitError{Code: exitcode.Interrupted, Cause: fmt.Errorf("interrupted; the arrival was withdrawn")}
	}
	return err
}
