package command

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/control"
	"github.com/clusterrun/clusterrun/starter/command/disk"
	"github.com/clusterrun/clusterrun/starter/command/doctor"
	"github.com/clusterrun/clusterrun/starter/command/hosts"
	"github.com/clusterrun/clusterrun/starter/command/inspect"
	"github.com/clusterrun/clusterrun/starter/command/logs"
	"github.com/clusterrun/clusterrun/starter/command/report"
	"github.com/clusterrun/clusterrun/starter/command/run"
	"github.com/clusterrun/clusterrun/starter/command/server"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/command/submit"
	"github.com/clusterrun/clusterrun/starter/command/task"
	"github.com/clusterrun/clusterrun/starter/command/worker"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const rootHelp = `clusterrun: launch distributed programs, restart what fails, report why.

Usage: clusterrun COMMAND [flags]

  clusterrun run -n 4 -- python3 train.py          four processes here
  clusterrun run -H a:8,b:8 -- python3 train.py    on hosts, by ssh
  clusterrun torchrun --nproc-per-node 8 train.py  torchrun's command line
  clusterrun submit job.yaml                       in the background, on a queue

`

// rootFor returns the root command with the commands that args may name. It builds all commands
// only if they are needed, because that takes milliseconds, which matter for frequently executed
// commands.
func rootFor(a *cli.App, args []string) *cobra.Command {
	if len(args) > 0 {
		if build, ok := oftenExecuted(a)[args[0]]; ok {
			root := bareRoot(a)
			root.AddCommand(build()...)
			return root
		}
	}
	return root(a)
}

// oftenExecuted returns a function for each frequently executed command. It builds the command,
// and those that the command looks up.
func oftenExecuted(a *cli.App) map[string]func() []*cobra.Command {
	return map[string]func() []*cobra.Command{
		"run":         func() []*cobra.Command { return []*cobra.Command{run.Run(a)} },
		"torchrun":    func() []*cobra.Command { return []*cobra.Command{run.Torchrun(a), run.Run(a)} },
		"task":        func() []*cobra.Command { return []*cobra.Command{task.Task(a)} },
		"home-worker": func() []*cobra.Command { return []*cobra.Command{worker.HomeWorker(a)} },
		"side":        func() []*cobra.Command { return []*cobra.Command{worker.Side(a)} },
	}
}

// bareRoot returns the root without subcommands.
func bareRoot(a *cli.App) *cobra.Command {
	cobra.EnableCommandSorting = false // commands are listed in the order of the code
	root := &cobra.Command{
		Use:           "clusterrun",
		Short:         "Run a distributed program's processes, and report how each of them ended",
		Version:       cli.VersionLine(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.Given = cmd.Flags()
			return a.Prepare()
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(a, cmd, err) })
	// torchrun, for example, writes flags with underscores.
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
	})
	a.Global.Register(root.PersistentFlags())
	root.SetHelpCommand(Help(a))
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text := cli.HelpText(cmd, specs.Headings())
		if !cmd.HasParent() {
			text = commandList(cmd)
		}
		_, _ = io.WriteString(cmd.OutOrStdout(), text) // the outputs remember errors
	})
	return cli.AsGroup(root)
}

func root(a *cli.App) *cobra.Command {
	root := bareRoot(a)
	groups := []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"runs", "Run", []*cobra.Command{run.Run(a), run.Torchrun(a), submit.Submit(a), run.Rerun(a), submit.Validate(a)}},
		{"look", "Look", []*cobra.Command{inspect.List(a), inspect.Status(a), inspect.Show(a), inspect.Diff(a), report.Wait(a), logs.Logs(a), inspect.Stacks(a), inspect.Export(a)}},
		{"act", "Change", []*cobra.Command{control.Stop(a), control.Restart(a), control.Start(a), control.Signal(a), disk.Rm(a)}},
		{"host", "Hosts and server", []*cobra.Command{server.Dev(a), server.Pages(a), worker.Worker(a), hosts.Host(a), server.Server(a), hosts.Policy(a), doctor.Doctor(a)}},
		{"task", "Programs", []*cobra.Command{task.Task(a)}},
		{"", "", []*cobra.Command{Version(a), Completion(a), worker.Side(a), worker.HomeWorker(a), run.RemoteHost(a)}},
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
	cli.CompleteAll(a, root)
	return root
}

// commandList returns the root's help: all commands, on one screen.
func commandList(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(rootHelp)
	for _, g := range root.Groups() {
		b.WriteString(g.Title + "\n")
		for _, c := range root.Commands() {
			if c.GroupID == g.ID && c.IsAvailableCommand() {
				fmt.Fprintf(&b, "  %-9s %s\n", c.Name(), shorten.Text(c.Short, 68))
			}
		}
	}
	b.WriteString("\nTopics: clusterrun help topics    Global flags: clusterrun help flags\n")
	return b.String()
}

// flagError turns a pflag error into a usage error with a remedy.
func flagError(a *cli.App, cmd *cobra.Command, err error) error {
	if !cmd.HasParent() && !strings.HasPrefix(a.Args[0], "-") {
		return cli.UnknownCommand(cmd, a.Args[0]) // the flag may belong to a command whose name was misspelled
	}
	if hint := run.TorchrunHint(cmd, err); hint != "" {
		return cli.Usagef("%s; %s", cli.FlagWords(err), hint)
	}
	if near := nearFlag(cmd, err); near != "" {
		return cli.Usagef("%s; did you mean %s?", cli.FlagWords(err), near)
	}
	return cli.Usagef("%s; see `%s --help`", cli.FlagWords(err), cmd.CommandPath())
}

// nearFlag returns a flag of cmd similar to the unknown one in err, or "".
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
