package command

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagNamed returns a flag of a command, or of all commands; nil: there is none.
func flagNamed(cmd *cobra.Command, name string) *pflag.Flag {
	if f := cmd.Flags().Lookup(name); f != nil {
		return f
	}
	return cmd.InheritedFlags().Lookup(name)
}

// takesValue reports whether the value of a flag is the next argument.
func takesValue(cmd *cobra.Command, arg string) bool {
	if strings.Contains(arg, "=") {
		return false
	}
	if name, long := strings.CutPrefix(arg, "--"); long {
		f := flagNamed(cmd, name)
		return f != nil && f.NoOptDefVal == ""
	}
	if len(arg) != 2 {
		return false // -n4
	}
	f := cmd.Flags().ShorthandLookup(arg[1:])
	return f != nil && f.NoOptDefVal == ""
}
