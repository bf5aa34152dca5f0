package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// expandNP writes mpirun's -np as --np: to a parser of POSIX flags it is -n
// with the value "p". Only flags of clusterrun are looked at, not those of the
// command that is to run.
func expandNP(root *cobra.Command, args []string) []string {
	cmd, _, err := root.Find(args)
	if err != nil || cmd.Flags().Lookup("np") == nil {
		return args
	}
	out := append([]string{}, args...)
	named := false // the subcommand's name has gone by
	for i := 0; i < len(out); i++ {
		arg := out[i]
		switch {
		case !named && arg == cmd.Name():
			named = true
		case arg == "--" || arg == "-" || !strings.HasPrefix(arg, "-"):
			return out
		case arg == "-np":
			out[i] = "--np"
			i++
		case strings.HasPrefix(arg, "-np="):
			out[i] = "-" + arg
		case takesValue(cmd, arg):
			i++
		}
	}
	return out
}

// takesValue reports whether the value of a flag is the next argument.
func takesValue(cmd *cobra.Command, arg string) bool {
	if strings.Contains(arg, "=") {
		return false
	}
	name, long := strings.CutPrefix(arg, "--")
	if long {
		f := cmd.Flags().Lookup(name)
		if f == nil {
			f = cmd.InheritedFlags().Lookup(name)
		}
		return f != nil && f.NoOptDefVal == ""
	}
	if len(arg) != 2 {
		return false // -n4
	}
	f := cmd.Flags().ShorthandLookup(arg[1:])
	return f != nil && f.NoOptDefVal == ""
}
