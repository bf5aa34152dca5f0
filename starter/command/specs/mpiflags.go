package specs

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/launchers/mpirun"
)

// Translate replaces the flags of mpirun and srun in the command line of a command that makes a
// spec. It does not change the flags of the program to run.
func Translate(a *cli.App, root *cobra.Command, args []string) ([]string, error) {
	cmd, _, err := root.Find(args)
	if makesSpec := err == nil && cmd.Flags().Lookup("np") != nil; !makesSpec {
		return args, nil // cobra reports what is wrong
	}
	at := AfterName(root, cmd, args)
	l, err := mpirun.Translate(args[at:], wordsOf(cmd))
	if err != nil {
		return nil, cli.Usagef("%s", err)
	}
	a.Notes = append(a.Notes, l.Notes...)
	return slices.Concat(args[:at], l.Args), nil
}

// wordsOf describes the flags of a command for the translation of other launchers' flags.
func wordsOf(cmd *cobra.Command) mpirun.Command {
	return mpirun.Command{
		Has:        func(name string) bool { return cmd.Flag(name) != nil },
		TakesValue: func(flag string) bool { return cli.TakesValue(cmd, flag) },
		Fleet:      cmd.Name() == "submit" || cmd.Name() == "create",
	}
}

// AfterName returns where the arguments of a command begin.
func AfterName(root, cmd *cobra.Command, args []string) int {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == cmd.Name():
			return i + 1
		case strings.HasPrefix(args[i], "-") && cli.TakesValue(root, args[i]):
			i++
		}
	}
	return len(args)
}
