package run

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/launchers/torchrun"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Torchrun(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:                   "torchrun [FLAG...] SCRIPT [ARG...]",
		DisableFlagsInUseLine: true,
		Short:                 "The same, with torchrun's command line",
		Long:                  torchrun.Reference(), // for its help
		RunE:                  func(cmd *cobra.Command, args []string) error { return runTorchrun(cmd.Context(), a, cmd, args) },
	}
}

// runTorchrun runs the command [Torchrun].
func runTorchrun(ctx context.Context, a *cli.App, cmd *cobra.Command, args []string) error {
	l, err := torchrun.Translate(args, torchrun.Machine{
		Environ: os.Environ(), Inherited: taskenv.Clean(os.Environ()), LookPath: exec.LookPath,
		Processes: func(text string) (int, error) { return specs.ParseNProc(text, specs.LocalMachine()) },
	})
	switch {
	case err != nil:
		return torchrunError(cmd, err)
	case l.Help:
		return cmd.Help()
	}
	o := runOptions{torchrun: true, meeting: l.Meeting}
	if l.Signals != "" {
		var problems []string
		if o.stopping, problems = cli.InterruptsOf(l.Signals); len(problems) > 0 {
			return cli.Usagef("--signals-to-handle %s: %s", l.Signals, strings.Join(problems, "; "))
		}
	}
	s, err := specOfTorchrun(a, l)
	if err != nil {
		return err
	}
	if _, _, err := a.External(ctx); err != nil {
		return err
	}
	if err := prepareHere(s, o); err != nil {
		return err
	}
	o.stdin = readerOf(a, s)
	return runHere(ctx, a, s, o)
}

// asTyped replaces names in errors with the flags that the torchrun user typed.
var asTyped = strings.NewReplacer("--task, tasks:", "--nproc-per-node:", "--log-prefix:", "--log-line-prefix-template, TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE:")

// specOfTorchrun returns the spec for a torchrun command line.
func specOfTorchrun(a *cli.App, l *torchrun.Launch) (*spec.RunSpec, error) {
	f := &specs.SpecFlags{}
	fs := pflag.NewFlagSet("torchrun", pflag.ContinueOnError)
	f.Register(fs)
	if err := fs.Parse(l.Flags); err != nil {
		return nil, cli.Usagef("%s", cli.FlagWords(err))
	}
	s, err := specs.Source{Command: l.Command}.Read(a.In, f)
	if err != nil {
		return nil, cli.Usagef("%s", asTyped.Replace(err.Error()))
	}
	for _, text := range slices.Concat(l.Notes, f.Warnings) {
		a.Say("%s", text)
	}
	err = specs.ApplyMPI(a, s, f)
	s.Command = torchrun.WithLocalRank(s.Command) // last, because the run is named after the command as typed
	return s, err
}

// torchrunError adds to the error about an unknown flag which clusterrun command has that flag.
func torchrunError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*torchrun.UnknownFlagError](err); ok {
		run, _, _ := cmd.Root().Find([]string{"run"})
		switch known := func(fs *pflag.FlagSet) bool {
			return fs.Lookup(unknown.Name) != nil || len(unknown.Name) == 1 && fs.ShorthandLookup(unknown.Name) != nil
		}; {
		case known(cmd.Root().PersistentFlags()):
			return cli.Usagef("torchrun has no flag --%s, but clusterrun does; write it before torchrun: clusterrun --%s ... torchrun", unknown.Name, unknown.Name)
		case known(run.Flags()):
			return cli.Usagef("%s; `clusterrun run` has that flag, and also --nproc-per-node", err)
		}
	}
	return cli.Usagef("%s", err)
}

// TorchrunHint returns a hint if err is about a flag that torchrun has and cmd does not, and ""
// otherwise.
func TorchrunHint(cmd *cobra.Command, err error) string {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && cmd.Flags().Lookup("nproc-per-node") != nil && torchrun.Has(unknown.GetSpecifiedName()) {
		return "it is a flag of torchrun: did you mean `clusterrun torchrun`?"
	}
	return ""
}
