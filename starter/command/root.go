package command

import (
	"encoding/csv"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter/help"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const rootHelp = `clusterrun starts the processes of a distributed program (plain ranks, or a chief,
workers and parameter servers), keeps them running, and reports exactly how each one
ended. A run is a Temporal workflow: it outlives the terminal that started it, the
launcher and the server.

Unless you name a server, clusterrun starts an embedded one in the background. Name
yours with --address, TEMPORAL_ADDRESS or a profile of the temporal CLI.

` + "`clusterrun help`" + ` lists topics with examples.`

const rootExamples = `  # Four processes of one program, on this machine
  clusterrun run -n 4 -- python3 train.py

  # A cluster from a file
  clusterrun run iris.yaml

  # A server with a Web UI and a host worker in this terminal; then, in another terminal
  clusterrun dev
  clusterrun submit iris.yaml`

// rootFor returns the root of the commands that args may name. To build all of them takes
// milliseconds, which commands that are executed often would spend each time.
func rootFor(a *app, args []string) *cobra.Command {
	if len(args) > 0 {
		if build, ok := oftenExecuted(a)[args[0]]; ok {
			root := bareRoot(a)
			root.AddCommand(build()...)
			return root
		}
	}
	return root(a)
}

// oftenExecuted returns what builds commands by name, each with the others that it looks up.
func oftenExecuted(a *app) map[string]func() []*cobra.Command {
	return map[string]func() []*cobra.Command{
		"run":       func() []*cobra.Command { return []*cobra.Command{Run(a)} },
		"torchrun":  func() []*cobra.Command { return []*cobra.Command{Torchrun(a), Run(a)} },
		"task":      func() []*cobra.Command { return []*cobra.Command{Task(a)} },
		"supervise": func() []*cobra.Command { return []*cobra.Command{Supervise(a)} },
		"side":      func() []*cobra.Command { return []*cobra.Command{Side(a)} },
	}
}

// bareRoot returns the root without commands.
func bareRoot(a *app) *cobra.Command {
	cobra.EnableCommandSorting = false // the order below is by use
	root := &cobra.Command{
		Use:           "clusterrun",
		Short:         "Run the processes of a distributed program, and report how each ended",
		Long:          rootHelp,
		Example:       rootExamples,
		Version:       versionLine(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.given = cmd.Flags()
			return a.prepare()
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(a, cmd, err) })
	// torchrun and the seeds write flags with underscores.
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	a.global.register(root.PersistentFlags())
	root.SetHelpCommand(Help(a))
	return asGroup(root)
}

func root(a *app) *cobra.Command {
	root := bareRoot(a)
	groups := []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"runs", "Start a run:", []*cobra.Command{Run(a), Torchrun(a), Submit(a), ScheduleRun(a), Rerun(a), Validate(a), Plan(a), Schema(a)}},
		{"look", "Look at runs:", []*cobra.Command{List(a), Status(a), Top(a), Usage(a), Show(a), Diff(a), Explain(a), Trace(a), Wait(a), Logs(a), Stacks(a), Barriers(a), Export(a)}},
		{"act", "Change a run:", []*cobra.Command{Stop(a), Terminate(a), StartTask(a), RestartTask(a), Signal(a)}},
		{"disk", "Make room:", []*cobra.Command{DU(a), Prune(a), Rm(a), Keep(a)}},
		{"closures", "Call functions in the tasks of a run:", []*cobra.Command{Schedule(a), Fetch(a), Join(a), Done(a), Closures(a), Coordinate(a)}},
		{"host", "Serve runs:", []*cobra.Command{Dev(a), UI(a), Env(a), CodecServer(a), Worker(a), InstallService(a), Policy(a), Hosts(a), Queue(a), Host(a), Doctor(a)}},
		{"task", "Within a task:", []*cobra.Command{Task(a)}},
		{"", "", []*cobra.Command{Version(a), Supervise(a), Side(a), TakeOver(a), RemoteHost(a)}},
	}
	for _, g := range groups {
		if g.id != "" {
			root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		}
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	completeAll(a, root)
	addCompletion(a, root)
	return root
}

// asGroup has a command that only has others show its help, and refuse what is none of them.
func asGroup(cmd *cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs // Cobra would show the help for these, too, as if all were well
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
	return cmd
}

// flagError turns what pflag says into a mistake with a remedy.
func flagError(a *app, cmd *cobra.Command, err error) error {
	if !cmd.HasParent() {
		// The flag may be one of the command that was meant.
		if at := slices.IndexFunc(a.args, func(arg string) bool { return !strings.HasPrefix(arg, "-") }); at == 0 {
			return unknownCommand(cmd, a.args[at])
		}
		if flag := flagOfRun(cmd, err); flag != "" {
			return usagef("%s is a flag of run; write `clusterrun run %s ...`", flag, flag)
		}
	}
	if hint := torchrunHint(cmd, err); hint != "" {
		return usagef("%s; %s", flagWords(err), hint)
	}
	if near := nearFlag(cmd, err); near != "" {
		return usagef("%s; did you mean %s?", flagWords(err), near)
	}
	return usagef("%s; see `%s --help`", flagWords(err), cmd.CommandPath())
}

// flagOfRun returns the unknown flag of err as it was written if `clusterrun run` has it.
// Otherwise it is empty.
func flagOfRun(root *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	run, _, findErr := root.Find([]string{"run"})
	if !errors.As(err, &unknown) || findErr != nil {
		return ""
	}
	name := unknown.GetSpecifiedName()
	switch {
	case unknown.GetSpecifiedShortnames() != "" && run.Flags().ShorthandLookup(name) != nil:
		return "-" + name
	case unknown.GetSpecifiedShortnames() == "" && run.Flags().Lookup(name) != nil:
		return "--" + name
	}
	return ""
}

// nearFlag returns the flag that was probably meant by one that there is not. Empty: none was.
func nearFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	var names []string
	note := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	}
	cmd.Flags().VisitAll(note)
	cmd.InheritedFlags().VisitAll(note)
	return spec.Nearest(unknown.GetSpecifiedName(), names)
}

// flagWords returns what is wrong with a flag, without the words of Go's packages for it.
func flagWords(err error) string {
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
		want = "give true or false"
	case errors.Is(cause, strconv.ErrRange):
		want = "give a smaller number"
	case errors.As(cause, &number):
		want = "give a whole number"
	case strings.HasPrefix(cause.Error(), "time: "):
		want = "write it like 3s, 90m or 1h30m"
	case errors.As(cause, &quotes):
		want = "its quotes do not match; leave them out"
	default:
		return err.Error()
	}
	return strings.TrimSuffix(err.Error(), cause.Error()) + want
}

// otherNames are what commands are called elsewhere.
var otherNames = map[string]string{
	"start": "run", "exec": "run", "launch": "run",
	"sbatch": "submit", "ps": "list", "ls": "list", "squeue": "list", "cancel": "stop", "scancel": "stop",
	"kill": "terminate", "log": "logs", "tail": "logs", "check": "validate", "nodes": "hosts", "man": "help",
}

// unknownCommand refuses what is no command of cmd, and says what was probably meant.
func unknownCommand(cmd *cobra.Command, name string) error {
	near := otherNames[name]
	if cmd.HasParent() {
		near = ""
	} else if slices.Contains([]string{"mpirun", "mpiexec", "srun"}, name) {
		return usagef("there is no command %q; `clusterrun run` takes the flags of mpirun and srun (see `clusterrun help mpirun`)", name)
	} else if _, topic := help.Find(name); topic {
		return usagef("there is no command %q; `clusterrun help %s` is about it", name, name)
	}
	if near == "" {
		var names []string
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				names = append(names, c.Name())
			}
		}
		near = spec.Nearest(name, names)
	}
	if near != "" {
		return usagef("there is no command %q; did you mean `%s %s`?", name, cmd.CommandPath(), near)
	}
	_, notInPath := exec.LookPath(name)
	_, noFile := os.Stat(name)
	switch {
	case cmd.HasParent():
	case notInPath == nil, slices.Contains(specExtensions, filepath.Ext(name)):
		return usagef("there is no command %q; to run a program or a spec write `clusterrun run %s`", name, name)
	case noFile == nil && filepath.Ext(name) == ".py":
		return usagef("there is no command %q; to run that file write `clusterrun run -- python3 %s`", name, name)
	}
	return usagef("there is no command %q; see `%s --help`", name, cmd.CommandPath())
}

// noArgs, oneArg and someArgs check positional arguments in our own words.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("unexpected argument %q; usage: %s", args[0], cmd.UseLine())
	}
	return nil
}

func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return missing(cmd, what)
		case len(args) > 1:
			return usagef("unexpected argument %q; usage: %s", args[1], cmd.UseLine())
		}
		return checkFirst(what, args[0])
	}
}

// missing reports that an argument is missing, and how to find a run.
func missing(cmd *cobra.Command, what string) error {
	switch {
	case what != "RUN":
		return usagef("%s is missing; usage: %s", what, cmd.UseLine())
	case cmd.Flags().Lookup("last") != nil:
		return usagef("RUN is missing: give an ID that `clusterrun list` shows, or --last; usage: %s", cmd.UseLine())
	}
	return usagef("RUN is missing: give an ID that `clusterrun list` shows; usage: %s", cmd.UseLine())
}

func someArgs(least int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least {
			return missing(cmd, what)
		}
		if len(args) == 0 {
			return nil
		}
		return checkFirst(what, args[0])
	}
}

// checkFirst checks the first argument where that is a run.
func checkFirst(what, arg string) error {
	if !strings.HasPrefix(what, "RUN") {
		return nil
	}
	return checkRun(arg)
}
