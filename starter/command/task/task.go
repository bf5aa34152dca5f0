package task

import (
	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// Task returns the commands for programs that clusterrun runs.
func Task(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "task",
		Short: "Commands for programs that are tasks of a run",
		Long: `Commands for programs that are tasks of a run, and for those who write them.

Exit codes:
  0    done
  2    mistake in the command line
  125  it could not be done`,
		Example: "  clusterrun task barrier --timeout 5m\n  clusterrun task result 0.97\n  clusterrun task python --help",
	}
	cmd.AddCommand(
		taskStopCommand(a), taskShouldStopCommand(a), taskWaitForStopCommand(a), taskClearStopCommand(a),
		taskBarrierCommand(a), taskMPICommand(a), taskResultCommand(a), taskErrorCommand(a), taskProgressCommand(a),
		taskClusterCommand(a), taskInfoCommand(a), taskRestartCountCommand(a), taskPythonCommand(a),
	)
	return cli.AsGroup(cmd)
}
