package command

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/task/python"
)

func (a *app) taskPythonCommand() *cobra.Command {
	var dir bool
	cmd := &cobra.Command{
		Use:   "python [flags]",
		Short: "The Python package for tasks",
		Long: `Prints an archive of the Python package clusterrun, for programs that are tasks: it
can stand in PYTHONPATH, and pip installs it. With --dir it puts the package into a
directory below the state directory and prints that directory, for PYTHONPATH. Each
version has a directory of its own.

The package has barriers, stopping together, results, errors, progress and the cluster
for tasks, and a Coordinator and LooperThread for threads, of one process or of all
tasks. A program that imports it answers ` + "`clusterrun stacks`" + ` with its Python stacks.
Its Pool has this clusterrun run processes for a program that is no task.

Exit codes:
  0    printed
  2    mistake in the command line
  125  the directory could not be written`,
		Example: `  clusterrun task python > clusterrun.zip
  PYTHONPATH=$(clusterrun task python --dir) clusterrun run -n 4 -- python3 train.py`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find our own executable: %w", err)
			}
			if !dir {
				return a.printPython(self)
			}
			path, err := python.Install(filepath.Join(a.global.stateDir, "python"), self)
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

func (a *app) printPython(binary string) error {
	if isTerminal(a.out) {
		return usagef("the archive is no text for a terminal: redirect it, or give --dir")
	}
	archive, err := python.Archive(binary)
	if err != nil {
		return err
	}
	return a.printRaw(archive)
}
