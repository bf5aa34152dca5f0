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

const runHelp = `Run a cluster on this machine, or on hosts reached by ssh, and wait for its end. It
shows the output of all processes, each line with its task. At the end it reports how
every process ended, the root cause first, and exits with the root cause's exit code.

SPEC is a file in YAML or JSON, a TensorFlow cluster spec, or - for stdin; its name ends
in .yaml, .yml or .json. Flags override the file. Without a file, the flags and a command
make a run. Flags for clusterrun come before the command; everything after the name of
the command belongs to it. A : separates several programs, as in -n 2 ./a : -n 1 ./b;
each becomes a task type. Flags of mpirun and srun work, too: see ` + "`clusterrun help mpirun`" + `.

Processes run in the current directory unless --dir or the spec names another, with the
environment of this shell. With --remote they run on host workers, with the environment
of the host worker and what --env, -x and --env-from-shell send of this shell's. Their
output is fetched from there. If the run succeeds but some output cannot be fetched, the
exit code is 125; with -q no output is fetched.

With --array the command is run for each combination of some parameters, on as many processors as
there are or --at-most N at once. The output of each trial is shown when it has ended, and the exit
code is 1 if one has failed. See ` + "`clusterrun help sweeps`" + `.

With --ship DIRECTORY they run in a copy of that directory as it is now, without .git and
what .gitignore names, which each host unpacks into a private directory. The copy is
removed at the end of the run, here and with -H, and with --remote together with the logs.

With -H or --hostfile they run on those hosts, which need only sshd and this program. Tasks
are placed by slot, in the same directory, with the environment that ssh gives them. Their
output and logs come here. If a host cannot be reached, the command says why and starts
nothing. --launch-agent names another program than ssh: it is called as PROGRAM
[ARGUMENT...] HOST COMMAND, and has to run COMMAND in a shell on the host, connected to
its own stdin and stdout.

A task in the --foreground has this terminal to itself, for a debugger or a shell: keys
such as Ctrl-C go to the task, and Ctrl-] three times within a second stops the run. If
stdin is not a terminal, the task gets stdin, stdout and stderr themselves. Its output
goes to no file; -q hides the output of the others.

Otherwise Ctrl-C stops the run: every process gets the spec's stop signal, by default
SIGTERM, and SIGKILL after the grace. This works without the server, too, if it does not
answer within 5 s. A second Ctrl-C kills the run. With --remote, Ctrl-C only ends the
waiting. If nobody reads the output, the command waits until a signal comes, and 2 s
longer; the logs have all of it. If this command is killed, its processes end with it.
Ctrl-Z suspends the command, and not the run.
TORCHELASTIC_SIGNALS_TO_HANDLE replaces the list of signals that stop a run,
SIGTERM,SIGINT,SIGHUP,SIGQUIT. SIGUSR1 and SIGUSR2 are passed on to all processes that run.

` + cli.ExitCodesOfRuns

const runExamples = `  # Four processes of one program
  clusterrun run -n 4 -- python3 train.py --epochs 3

  # A chief, three workers and two parameter servers, which find each other by TF_CONFIG
  clusterrun run --task chief=1 --task worker=3 --task ps=2 -- python3 train.py

  # From a file, with another timeout, and the result as JSON
  clusterrun run --timeout 10m --json iris.yaml

  # Restart a failed process, at most five times
  clusterrun run -n 8 --max-restarts 5 -- ./worker

  # The chief stops at breakpoint() in train.py, and pdb has this terminal
  clusterrun run --foreground chief-0 --task chief=1 --task worker=3 -- python3 train.py

  # With the flags of torchrun, whose restarts are those of the whole group, and of mpirun
  clusterrun run --nproc-per-node 4 --max-restarts 3 python3 train.py
  clusterrun run -np 4 -H localhost:4 ./solver
  clusterrun run -np 2 python3 ocean.py : -np 1 -x MODE=fine python3 air.py

  # Twenty trials of one program, as many at once as there are processors
  clusterrun run --array 'lr=1e-3,3e-4 seed=0..9' -- python3 train.py --lr {lr} --seed {seed}

  # In a copy of this directory, here or wherever there is room
  clusterrun run --ship . -- python3 train.py
  clusterrun run --remote --ship . --exclude '*.ckpt' -n 8 -- python3 train.py

  # On hosts by ssh: eight tasks on each; one for each GPU; hosts from a file
  clusterrun run -H a:8,b:8 -- python3 train.py
  clusterrun run -H a,b --nproc-per-node gpu python3 train.py
  clusterrun run --hostfile hosts --copy-binary --launch-agent "ssh -J gate" ./solver`

// runOptions are the flags of run that are not part of the spec.
type runOptions struct {
	id    string
	queue string
	array specs.Array
	// sweep makes a sweep of the run. It may be nil. resume and started are as in
	// [starter.Options].
	sweep      *sweep.Spec
	resume     *sweep.Resumption
	started    time.Time
	foreground string
	// stdin is the task that reads stdin, stdinAll, or "" if none does.
	stdin   string
	remote  bool
	signing specs.Signing
	quiet   bool
	fold    logs.Fold
	// coordinator is the descriptor on which a program coordinates the run, or 0 if none does.
	coordinator int
	// others are the hosts of the run. It is nil if all tasks are on this machine.
	others *specs.OtherHosts
	launch launchOptions
	// torchrun reports whether the run behaves as with torchrun: it prints nothing if it
	// succeeds, and exits with 1 if a process failed.
	torchrun bool
	// meeting says where agents meet. It is nil if there are no other agents.
	meeting *torchrun.Meeting
	// stopping are the signals that stop the run. If it is nil, TORCHELASTIC_SIGNALS_TO_HANDLE
	// names them.
	stopping []syscall.Signal
}

func Run(a *cli.App) *cobra.Command {
	f := &specs.SpecFlags{}
	var o runOptions
	cmd := &cobra.Command{
		Use:     "run [flags] SPEC | [--] COMMAND [ARG...]",
		Short:   "Run here or by ssh, show the output, and exit like the program",
		Long:    runHelp,
		Example: runExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
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

// register adds the flags of run and the flags of a spec.
func (o *runOptions) register(fs *pflag.FlagSet, f *specs.SpecFlags) {
	f.Register(fs)
	o.array.Register(fs, "as many as there are processors for")
	fs.BoolVar(&f.Oversubscribe, "oversubscribe", false, "with -H or --hostfile: more tasks than slots")
	fs.StringVar(&o.launch.agent, "launch-agent", "ssh", "reach other hosts by `PROGRAM`, with its arguments; it is called like ssh, with a host and a command")
	fs.BoolVar(&o.launch.copyBinary, "copy-binary", false, "let other hosts execute a copy of this program, which is put into ~/.cache/clusterrun if missing")
	fs.StringVar(&o.id, "id", "", "run `ID`; default: the name and a random part")
	fs.StringVar(&o.foreground, "foreground", "", "give this terminal, or stdin, stdout and stderr, to `TASK`, such as chief-0")
	fs.StringVar(&o.stdin, stdinFlag, "", "who reads stdin: none, all or one `TASK`, also on another host (default the first task, if stdin is a pipe or a file)")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "show neither the output of the processes nor that the run succeeded")
	o.fold.Register(fs)
	fs.BoolVar(&o.remote, "remote", false, "run on the host workers that serve the queue, show the output, and wait")
	fs.StringVar(&o.queue, "queue", spec.TaskQueue, "with --remote: task `QUEUE` of the host workers")
	o.signing.Register(fs, "with --remote: ")
	fs.IntVar(&o.coordinator, coordinatorFlag, 0, "descriptor `FD` of a socket, on which the owner of the run schedules closures as with `clusterrun call pipe`; the run ends with it")
	_ = fs.MarkHidden(coordinatorFlag)
	specs.SetSections(fs, nil)
}

// runSpec runs a spec. args name the source of the spec, and may be empty.
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
		specs.SayUnsent(a, cmd, args, s, specs.HostEnv(cmd.Context(), a))
		return runRemote(a, cmd, s, *o)
	}
	if o.signing.Wanted() {
		return cli.Usagef("--sign and --sign-key are for --remote: without it the run is executed here, as you")
	}
	if cmd.Flags().Changed("queue") {
		return cli.Usagef("--queue is for --remote: without it the run is executed here")
	}
	if _, _, err := a.External(cmd.Context()); err != nil {
		return err
	}
	if o.others = f.Others; o.others != nil {
		specs.SayUnsent(a, cmd, args, s, nil)
	} else {
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
	if cmd.Flags().Changed(coordinatorFlag) && o.coordinator < cli.LifelineFD {
		return cli.Usagef("--%s %d: give the descriptor of a socket, such as %d", coordinatorFlag, o.coordinator, cli.LifelineFD)
	}
	if o.others == nil && !o.quiet && o.coordinator == 0 {
		specs.SayThreads(a, s)
		if f.Given("devices") && f.Flags.Lookup("devices").Value.String() == "auto" && specs.LocalMachine().Gpus == 0 {
			a.Say("--devices auto has no effect: no GPU is seen on this machine")
		}
	}
	return runHere(cmd.Context(), a, s, *o)
}
