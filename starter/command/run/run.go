package run

import (
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/command/logs"
	"github.com/clusterrun/clusterrun/starter/command/specs"
	"github.com/clusterrun/clusterrun/starter/launchers/torchrun"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// runOptions holds run's flags that are not part of the spec.
type runOptions struct {
	id    string
	queue string
	array specs.Array
	// sweep makes the run a sweep. It may be nil. resume and started are as in
	// [starter.Options].
	sweep      *sweep.Spec
	resume     *sweep.Resumption
	started    time.Time
	foreground string
	// stdin is the task that reads stdin, or "" if none does.
	stdin   string
	remote  bool
	signing specs.Signing
	quiet   bool
	fold    logs.Fold
	// coordinator is the descriptor for the coordinating program, or 0.
	coordinator int
	// others are the run's hosts. It is nil if all tasks are on this machine.
	others *specs.OtherHosts
	// launchAgent is the program that connects to these hosts, with its arguments.
	launchAgent string
	// torchrun reports whether the run behaves like torchrun: it prints nothing if it succeeds,
	// and exits with 1 if a process failed.
	torchrun bool
	// meeting is where agents meet. It is nil if there are no other agents.
	meeting *torchrun.Meeting
	// stopping lists the signals that stop the run. If it is nil, TORCHELASTIC_SIGNALS_TO_HANDLE
	// names them.
	stopping []syscall.Signal
}

func Run(a *cli.App) *cobra.Command {
	f := &specs.SpecFlags{}
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [flags] SPEC | [--] COMMAND [ARG...]",
		Short: "Run here or over ssh, show the output, and exit like the program",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			defer func() { tellOwner(o.coordinator, err) }()
			s, err := specs.Read(a, cmd, args, f)
			if err != nil {
				return err
			}
			if err := setSweep(a, s, &o); err != nil {
				return err
			}
			return runSpec(a, cmd, args, s, f, &o)
		},
	}
	cmd.Flags().SetInterspersed(false)
	o.register(cmd.Flags(), f)
	return cmd
}

// register adds run's flags and a spec's flags.
func (o *runOptions) register(fs *pflag.FlagSet, f *specs.SpecFlags) {
	f.Register(fs)
	o.array.Register(fs, "as many as there are processors")
	fs.StringVar(&o.launchAgent, "launch-agent", "ssh", "reach other hosts with `PROGRAM`, called like ssh")
	fs.StringVar(&o.id, "id", "", "run `ID` (default: the name and a random part)")
	fs.StringVar(&o.foreground, "foreground", "", "give this terminal to `TASK`, such as chief-0")
	fs.StringVar(&o.stdin, stdinFlag, "", "let `TASK` read stdin, or none (default: the first task, if stdin is a pipe or a file)")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "show neither the output nor that the run succeeded")
	o.fold.Register(fs)
	fs.BoolVar(&o.remote, "remote", false, "run on a queue's host workers, show the output, and wait")
	fs.StringVar(&o.queue, "queue", spec.TaskQueue, "with --remote: the `QUEUE`")
	o.signing.Register(fs, "with --remote: ")
	fs.IntVar(&o.coordinator, coordinatorFlag, 0, "descriptor `FD` of a socket over which the run's owner makes the task API's closure requests; the run stops when it closes")
	_ = fs.MarkHidden(coordinatorFlag)
	specs.SetSections(fs, nil)
}

// runSpec runs a spec. args name the spec's source, and may be empty.
func runSpec(a *cli.App, cmd *cobra.Command, args []string, s *spec.RunSpec, f *specs.SpecFlags, o *runOptions) error {
	if err := cli.CheckID(cmd, o.id); err != nil {
		return err
	}
	if err := o.fold.Check(); err != nil {
		return err
	}
	if err := checkForeground(s, *o); err != nil {
		return err
	}
	if err := checkSweep(cmd, s, f, o); err != nil {
		return err
	}
	if o.sweep == nil {
		if err := setStdin(a, cmd, args, s, f, o); err != nil {
			return err
		}
	}
	if o.remote {
		if err := f.RefuseOthers("run --remote"); err != nil {
			return err
		}
		return runRemote(a, cmd, s, *o)
	}
	if o.signing.Wanted() {
		return cli.Usagef("--sign requires --remote: without it, the run is executed on this machine as your user")
	}
	if cmd.Flags().Changed("queue") {
		return cli.Usagef("--queue requires --remote: without it, the run is executed on this machine")
	}
	if _, _, err := a.External(cmd.Context()); err != nil {
		return err
	}
	if o.others = f.Others; o.others == nil {
		specs.SayRanks(a, cmd, args, s)
	}
	if err := prepareHere(s, *o); err != nil {
		return err
	}
	if o.others == nil && o.meeting == nil {
		if err := specs.CheckResources(s, f); err != nil {
			return err
		}
	}
	if cmd.Flags().Changed(coordinatorFlag) && o.coordinator < cli.FirstFD {
		return cli.Usagef("--%s %d: use a socket's descriptor, such as %d", coordinatorFlag, o.coordinator, cli.FirstFD)
	}
	if o.others == nil && !o.quiet && f.Given("devices") && f.Flags.Lookup("devices").Value.String() == "auto" && specs.LocalMachine().Gpus == 0 {
		a.Say("--devices auto does nothing, because no GPU is visible")
	}
	return runHere(cmd.Context(), a, s, *o)
}
