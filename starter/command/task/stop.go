package task

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// exitNo is the exit code of should-stop and preempted if the answer is no, like that of grep if
// there is no match.
const exitNo = 1

func taskStopCommand(a *cli.App) *cobra.Command {
	var o taskStopOptions
	cmd := &cobra.Command{
		Use:   "stop [flags]",
		Short: "Ask all of the run's tasks to stop",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runTaskStop(a, cmd, &o) },
	}
	cmd.Flags().StringVar(&o.message, "error", "", "stop because of the error described by `TEXT`; - reads it from stdin")
	cmd.Flags().StringVar(&o.kind, "kind", "", "`KIND` of the error, such as IOError")
	cmd.Flags().StringVar(&o.reason, "reason", "", "the reason, as `TEXT` for people, if it is not an error")
	cmd.MarkFlagsMutuallyExclusive("error", "reason")
	return cmd
}

// taskStopOptions holds the flags of [taskStopCommand].
type taskStopOptions struct {
	message, kind, reason string
}

// runTaskStop implements [taskStopCommand].
func runTaskStop(a *cli.App, cmd *cobra.Command, o *taskStopOptions) error {
	request := task.Stop{Reason: o.reason}
	given := cmd.Flags().Changed
	switch {
	case given("kind") && !given("error"):
		return cli.Usagef("--kind %s is the kind of an error, but there is none; add --error TEXT", o.kind)
	case given("error"):
		text, err := argumentOrStdin(a, o.message) // only the beginning is kept
		if err != nil {
			return err
		}
		if o.message = string(text); o.message == "" {
			return cli.Usagef("the message of --error is empty; describe the problem")
		}
		request.Error = &task.Report{Kind: o.kind, Message: o.message}
	}
	return asTask(cmd, func(ctx context.Context, t *task.Task) error {
		now, err := t.Stop(ctx, request)
		return printStopping(a, now, err)
	})
}

// printStopping prints the stop's state with --json, unless err is set. It returns err.
func printStopping(a *cli.App, now task.Stopping, err error) error {
	if err != nil || !a.Global.JSON {
		return err
	}
	return a.PrintJSON(now)
}

func taskShouldStopCommand(a *cli.App) *cobra.Command {
	return plainCommand("should-stop", "Report by the exit code whether the run's tasks should stop", func(ctx context.Context, t *task.Task) error {
		now, err := t.Stopping(ctx)
		if err = printStopping(a, now, err); err == nil && !now.Stop {
			return &cli.ExitError{Code: exitNo}
		}
		return err
	})
}

func taskPreemptedCommand(a *cli.App) *cobra.Command {
	return plainCommand("preempted", "Print the seconds until the task is stopped, if it has been notified", func(ctx context.Context, t *task.Task) error {
		now, err := t.Stopping(ctx)
		switch {
		case err != nil:
			return err
		case now.Notice == nil:
			return &cli.ExitError{Code: exitNo}
		}
		return a.PrintLine(now.Notice, "%.0f", now.Notice.Left)
	})
}
