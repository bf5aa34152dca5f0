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
		Long: `Print the seconds until the task is stopped, if it has notice of that: a run of higher
priority needs its room, its host drains, or a person has given notice. Without notice the
command prints nothing. Save a checkpoint, and exit with a code other than 0: the run
continues when there is room. If all tasks exit with 0 in time, the run succeeds.

Exit codes:
  0    the task has notice
  1    it has none
  2    mistake in the command line, or not called within a task
  125  the host refused it, or did not answer for a minute`,
		Example: `  if clusterrun task preempted; then save; exit 75; fi
  clusterrun task preempted --json | jq -r .reason`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runTaskPreempted(a, cmd) },
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
