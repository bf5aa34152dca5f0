package task

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func taskPreemptedCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "preempted [flags]",
		Short: "Print the seconds until the task is stopped, if it has notice",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runTaskPreempted(a, cmd) },
	}
}

// runTaskPreempted implements [taskPreemptedCommand].
func runTaskPreempted(a *cli.App, cmd *cobra.Command) error {
	var now task.Stopping
	err := asTask(cmd, func(ctx context.Context, t *task.Task) (err error) {
		now, err = t.Stopping(ctx)
		return err
	})
	switch {
	case err != nil:
		return err
	case now.Notice == nil:
		return &cli.ExitError{Code: exitNo}
	}
	return a.PrintLine(now.Notice, "%.0f", now.Notice.Left)
}
