package task

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/tasks/python"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

func taskPythonCommand(a *cli.App) *cobra.Command {
	var dir bool
	cmd := &cobra.Command{
		Use:   "python [flags]",
		Short: "Print the Python package for tasks, or its directory",
		Args:  cli.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return runTaskPython(a, dir) },
	}
	cmd.Flags().BoolVar(&dir, "dir", false, "unpack it into a directory and print the directory")
	return cmd
}

// runTaskPython implements [taskPythonCommand].
func runTaskPython(a *cli.App, dir bool) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find our own executable: %w", err)
	}
	if !dir {
		return printPython(a, self)
	}
	path, err := python.Install(filepath.Join(a.Global.StateDir, "python"), self)
	if err != nil {
		return err
	}
	return a.PrintLine(map[string]string{"dir": path}, "%v", path)
}

func printPython(a *cli.App, binary string) error {
	if cli.IsTerminal(a.Out) {
		return cli.Usagef("the archive is binary: redirect it, or use --dir")
	}
	archive, err := python.Archive(binary)
	if err != nil {
		return err
	}
	return a.PrintRaw(archive)
}
