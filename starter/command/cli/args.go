package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter/help"
)

// AsGroup makes cmd show its help if called without arguments, and refuse unknown subcommands.
func AsGroup(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs // otherwise Cobra would show the help for unknown subcommands without an error
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return UnknownCommand(cmd, args[0])
	}
	return cmd
}

// FlagWords returns a flag error's message without the terms of Go's packages.
func FlagWords(err error) string {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	cause := errors.Unwrap(invalid)
	var number *strconv.NumError
	var quotes *csv.ParseError
	var want string
	switch {
	case errors.As(cause, &number) && number.Func == "ParseBool":
		want = "use true or false"
	case errors.Is(cause, strconv.ErrRange):
		want = "use a smaller number"
	case errors.As(cause, &number):
		want = "use a whole number"
	case strings.HasPrefix(cause.Error(), "time: "):
		want = "for example, 3s, 90m or 1h30m"
	case errors.As(cause, &quotes):
		want = "its quotes are unbalanced; remove them"
	default:
		want = cause.Error()
	}
	flag := "--" + invalid.GetFlag().Name
	if short := invalid.GetFlag().Shorthand; short != "" {
		flag = "-" + short
	}
	return fmt.Sprintf("%s %q: %s", flag, invalid.GetValue(), want)
}

// UnknownCommand returns an error for an unknown subcommand of cmd, with a similar one as a
// suggestion.
func UnknownCommand(cmd *cobra.Command, name string) error {
	_, topic := help.Find(name)
	_, notInPath := exec.LookPath(name)
	cmd.SuggestionsMinimumDistance = 2
	switch near := cmd.SuggestionsFor(name); {
	case topic && !cmd.HasParent():
		return Usagef("there is no command %q; see `clusterrun help %s`", name, name)
	case !cmd.HasParent() && (notInPath == nil || slices.Contains(SpecExtensions, filepath.Ext(name))):
		return Usagef("there is no command %q; to run a program or a spec, use `clusterrun run %s`", name, name)
	case len(near) > 0:
		return Usagef("there is no command %q; did you mean `%s %s`?", name, cmd.CommandPath(), near[0])
	}
	return Usagef("there is no command %q; see `%s --help`", name, cmd.CommandPath())
}

// NoArgs refuses positional arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("unexpected argument %q; usage: %s", args[0], cmd.UseLine())
	}
	return nil
}

func OneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return missing(cmd, what)
		case len(args) > 1:
			return Usagef("unexpected argument %q; usage: %s", args[1], cmd.UseLine())
		}
		return checkFirst(what, args[0])
	}
}

// missing returns an error about a missing argument, which explains how to find a run.
func missing(cmd *cobra.Command, what string) error {
	switch {
	case what != "RUN":
		return Usagef("%s is missing; usage: %s", what, cmd.UseLine())
	case cmd.Flags().Lookup("last") != nil:
		return Usagef("RUN is missing: use an ID that `clusterrun list` shows, or --last; usage: %s", cmd.UseLine())
	}
	return Usagef("RUN is missing: use an ID that `clusterrun list` shows; usage: %s", cmd.UseLine())
}

func SomeArgs(least int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least {
			return missing(cmd, what)
		}
		if len(args) == 0 {
			return nil
		}
		if strings.Contains(cmd.Use, "RUN...") {
			return CheckPatterns(args)
		}
		return checkFirst(what, args[0])
	}
}

// checkFirst checks the first argument if it is a run.
func checkFirst(what, arg string) error {
	if !strings.HasPrefix(what, "RUN") {
		return nil
	}
	return CheckRun(arg)
}

// SpecExtensions lists the extensions of spec files. A name with any other extension is a
// program.
var SpecExtensions = []string{".yaml", ".yml", ".json"}
