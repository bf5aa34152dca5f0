package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/starter/launchers/mpirun"
)

// translate writes the words of mpirun and srun among the flags of a command that makes a
// spec in ours. Flags of the program that is to run are left alone.
func translate(a *app, root *cobra.Command, args []string) ([]string, error) {
	cmd, _, err := root.Find(args)
	if makesSpec := err == nil && cmd.Flags().Lookup("np") != nil; !makesSpec {
		return args, nil // what is wrong is for cobra to say
	}
	at := afterName(root, cmd, args)
	l, err := mpirun.Translate(args[at:], wordsOf(cmd))
	if err != nil {
		return nil, usagef("%s", err)
	}
	a.notes = append(a.notes, l.Notes...)
	return slices.Concat(args[:at], l.Args), nil
}

// wordsOf returns what has to be known of a command to read other launchers' words for it.
func wordsOf(cmd *cobra.Command) mpirun.Command {
	return mpirun.Command{
		Has:        func(name string) bool { return flagNamed(cmd, name) != nil },
		TakesValue: func(flag string) bool { return takesValue(cmd, flag) },
		Fleet:      cmd.Name() == "submit" || cmd.Name() == "plan",
	}
}

// afterName returns where the arguments of a command begin.
func afterName(root, cmd *cobra.Command, args []string) int {
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == cmd.Name():
			return i + 1
		case strings.HasPrefix(args[i], "-") && takesValue(root, args[i]):
			i++
		}
	}
	return len(args)
}
