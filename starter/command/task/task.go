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
	}
	cmd.AddCommand(
		taskStopCommand(a), taskShouldStopCommand(a), taskPreemptedCommand(a),
		taskBarrierCommand(a), taskMPICommand(a), taskResultCommand(a), taskErrorCommand(a), taskProgressCommand(a),
		taskInfoCommand(a), taskPythonCommand(a),
	)
	return cli.AsGroup(cmd)
}
