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

// exitNo is the exit code of should-stop and preempted if the answer is no, like grep's if
// nothing matches.
const exitNo = 1

func taskStopCommand(a *cli.App) *cobra.Command {
	var o taskStopOptions
	cmd := &cobra.Command{
		Use:   "stop [flags]",
		Short: "Ask all tasks of the run to stop",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runTaskStop(a, cmd, &o) },
	}
	cmd.Flags().StringVar(&o.message, "error", "", "stop because of the error that `TEXT` describes; - reads it from stdin")
	cmd.Flags().StringVar(&o.kind, "kind", "", "`KIND` of the error, such as IOError")
	cmd.Flags().StringVar(&o.reason, "reason", "", "the reason, a `TEXT` for people, if it is not an error")
	return cmd
}

// taskStopOptions are the flags of [taskStopCommand].
type taskStopOptions struct {
	message, kind, reason string
}

// runTaskStop implements [taskStopCommand].
func runTaskStop(a *cli.App, cmd *cobra.Command, o *taskStopOptions) error {
	request := task.Stop{Reason: o.reason}
	given := cmd.Flags().Changed
	switch {
	case given("error") && given("reason"):
		return cli.Usagef("--error and --reason are both given; an error is the reason, so give one of them")
	case given("kind") && !given("error"):
		return cli.Usagef("--kind %s is that of an error, and none is given; say it with --error TEXT", o.kind)
	case given("error"):
		text, err := argumentOrStdin(a, o.message) // only its beginning is kept
		if err != nil {
			return err
		}
		if o.message = string(text); o.message == "" {
			return cli.Usagef("the text of --error is empty; say what is wrong")
		}
		request.Error = &task.Report{Kind: o.kind, Message: o.message}
	}
	return showStopping(a, cmd, func(ctx context.Context, t *task.Task) (task.Stopping, error) { return t.Stop(ctx, request) })
}

func taskClearStopCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "clear-stop [flags]",
		Short: "Take back the stop of the run",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showStopping(a, cmd, func(ctx context.Context, t *task.Task) (task.Stopping, error) { return t.ClearStop(ctx) })
		},
	}
}

// showStopping makes a call. With --json it prints the state of the stop.
func showStopping(a *cli.App, cmd *cobra.Command, call func(context.Context, *task.Task) (task.Stopping, error)) error {
	var now task.Stopping
	err := asTask(cmd, func(ctx context.Context, t *task.Task) (err error) {
		now, err = call(ctx, t)
		return err
	})
	if err != nil || !a.Global.JSON {
		return err
	}
	return a.PrintJSON(now)
}

func taskShouldStopCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "should-stop [flags]",
		Short: "Report by the exit code whether the tasks of the run are to stop",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var now task.Stopping
			err := showStopping(a, cmd, func(ctx context.Context, t *task.Task) (_ task.Stopping, err error) {
				now, err = t.Stopping(ctx)
				return now, err
			})
			if err == nil && !now.Stop {
				return &cli.ExitError{Code: exitNo}
			}
			return err
		},
	}
}

func taskWaitForStopCommand(a *cli.App) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait-for-stop [flags]",
		Short: "Wait until the tasks of the run are to stop",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runTaskWaitForStop(cmd.Context(), a, cmd, timeout) },
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "wait at most this `TIME`, such as 30s; default: without limit")
	return cmd
}

// runTaskWaitForStop implements [taskWaitForStopCommand].
func runTaskWaitForStop(ctx context.Context, a *cli.App, cmd *cobra.Command, timeout time.Duration) error {
	t, err := currentTask()
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("timeout") {
		if timeout < 0 {
			return cli.Usagef("--timeout %s is negative; give a time span such as 30s", timeout)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	now, err := t.WaitForStop(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &cli.ExitError{Code: exitcode.Timeout, Cause: fmt.Errorf("there was no stop within %s", timeout)}
	case err != nil:
		return err
	case a.Global.JSON:
		return a.PrintJSON(now)
	}
	return nil
}
