package command

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/taskapi"
)

func (a *app) taskPythonCommand() *cobra.Command {
	var dir bool
	cmd := &cobra.Command{
		Use:   "python [flags]",
		Short: "The Python module for tasks",
		Long: `Prints the source of clusterrun.py, a Python module of one file for programs that are
tasks. With --dir it puts the module into a directory below the state directory and
prints that directory, for PYTHONPATH. Each version has a directory of its own.

The module has barriers, stopping together, results, errors, progress and the cluster
for tasks, and a Coordinator and LooperThread for threads, of one process or of all
tasks. A program that imports it answers ` + "`clusterrun stacks`" + ` with its Python stacks.
Its Pool has this clusterrun run processes for a program that is no task.

Exit codes:
  0    printed
  2    mistake in the command line
  125  the directory could not be written`,
		Example: `  clusterrun task python > clusterrun.py
  PYTHONPATH=$(clusterrun task python --dir) clusterrun run -n 4 -- python3 train.py`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find our own executable: %w", err)
			}
			if !dir {
				return a.printRaw(taskapi.PythonOf(self))
			}
			path, err := taskapi.InstallPythonOf(a.pythonDir(), self)
			if err != nil {
				return err
			}
			if a.global.json {
				return a.printJSON(map[string]string{"dir": path})
			}
			_, err = fmt.Fprintln(a.out, path)
			return err
		},
	}
	cmd.Flags().BoolVar(&dir, "dir", false, "put it into a directory and print that")
	return cmd
}

func (a *app) pythonDir() string { return filepath.Join(a.global.stateDir, "python") }
