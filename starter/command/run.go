package command

import (
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter/torchrun"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const runHelp = `Runs a cluster on this machine, or on hosts that ssh reaches, and waits for its end. The output of all
processes is shown, each line with the task it comes from; at the end it says how
every one of them ended, the root cause first, and exits as that did.

SPEC is a file in YAML or JSON, a TensorFlow cluster spec, or - for stdin; its
name ends in .yaml, .yml or .json. Flags change what the file says. Without a
file, the flags and a command make a run. Flags for clusterrun stand before the
command; what follows the command's name is the command's. With a : between them,
as in -n 2 ./a : -n 1 ./b, there are several programs, each a task type of its own.
Flags may be those of mpirun and srun: see ` + "`clusterrun help mpirun`" + `.

Processes run in the current directory unless --dir or the spec says otherwise,
with the environment of this shell. With --remote they run on other hosts: with
the environment of their host worker, and what --env, -x and --env-from-shell send
of this shell's. Their output is fetched from there. If the run succeeds and some of it
cannot be fetched, the exit code is 125; with -q none is fetched.

With --ship DIRECTORY they run in a copy of it, which each host unpacks into a private
directory: without .git and what .gitignore names, and as it is now, whatever changes
later. That directory is gone with the run here and with -H; with --remote it is there
for as long as the run's logs.

With -H or --hostfile they run on those hosts, which need nothing but sshd and this
program: by slot, in the same directory, and with what ssh gives them for an
environment. Their output and their logs come here. A host that cannot be had is
told of with the reason, and then nothing is started. Another program than ssh
(--launch-agent) is called as PROGRAM [ARGUMENT...] HOST COMMAND, and has a shell
there execute COMMAND with its own stdin and stdout.

A task in the --foreground has this terminal to itself, for a debugger or a shell:
keys such as Ctrl-C are its own, and Ctrl-] three times within a second stops the
run. Where stdin is no terminal, it has stdin, stdout and stderr themselves. What
it writes goes to no file; -q keeps the others' output out of its way.

Otherwise Ctrl-C once stops the run: every process gets SIGINT too, unless the spec names
another stop signal, and SIGKILL when its grace has passed; also without the server, when that does not answer within 5 s.
Twice kills it. Output that nobody reads is waited for until a signal comes, and for
2 s after it; all of it is in the logs. If this command is killed, its processes end
with it. TORCHELASTIC_SIGNALS_TO_HANDLE names other signals that stop a run
than SIGTERM,SIGINT,SIGHUP,SIGQUIT.

` + exitCodesOfRuns

const runExamples = `  # Four processes of one program
  clusterrun run -n 4 -- python3 train.py --epochs 3

  # A chief, three workers and two parameter servers that find each other by TF_CONFIG
  clusterrun run --task chief=1 --task worker=3 --task ps=2 -- python3 train.py

  # From a file; another timeout than it says; the result as JSON
  clusterrun run --timeout 10m --json iris.yaml

  # Start a failed process again, at most five times
  clusterrun run -n 8 --max-restarts 5 -- ./worker

  # The chief stops at breakpoint() in train.py, and pdb has this terminal
  clusterrun run --foreground chief-0 --task chief=1 --task worker=3 -- python3 train.py

  # As with torchrun and mpirun; torchrun's restarts are those of the whole group
  clusterrun run --nproc-per-node 4 --max-restarts 3 python3 train.py
  clusterrun run -np 4 -H localhost:4 ./solver
  clusterrun run -np 2 python3 ocean.py : -np 1 -x MODE=fine python3 air.py

  # In a copy of this directory, here or wherever there is room
  clusterrun run --ship . -- python3 train.py
  clusterrun run --remote --ship . --exclude '*.ckpt' -n 8 -- python3 train.py

  # On two hosts by ssh: eight tasks each; one for each GPU there; from a file
  clusterrun run -H a:8,b:8 -- python3 train.py
  clusterrun run -H a,b --nproc-per-node gpu python3 train.py
  clusterrun run --hostfile hosts --copy-binary --launch-agent "ssh -J gate" ./solver`

// runOptions are the flags of run beyond those that make a spec.
type runOptions struct {
	id         string
	queue      string
	foreground string
	// stdin is the task that reads stdin, or all; empty: none does.
	stdin   string
	remote  bool
	signing signing
	quiet   bool
	// coordinator is the descriptor on which a program coordinates the run; 0: none.
	coordinator int
	// others are the hosts, where some are other machines. nil: all is on this one.
	others *otherHosts
	launch launchOptions
	// torchrun reports whether the run is as torchrun's: without a word where it does well,
	// and with exit code 1 where a process failed.
	torchrun bool
	// meeting is where other agents take part; nil: there are none.
	meeting *torchrun.Meeting
	// stopping are the signals that stop the run; nil: signalsVariable says which.
	stopping []syscall.Signal
}

func (a *app) runCommand() *cobra.Command {
	f := &specFlags{}
	var o runOptions
	cmd := &cobra.Command{
		Use:     "run [flags] SPEC | [--] COMMAND [ARG...]",
		Short:   "Run a cluster here or on hosts by ssh, show its output, and exit as it did",
		Long:    runHelp,
		Example: runExamples,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.specOf(cmd, args, f)
			if err != nil {
				return err
			}
			return a.runSpec(cmd, args, s, f, &o)
		},
	}
	cmd.Flags().SetInterspersed(false)
	o.register(cmd.Flags(), f)
	return cmd
}

// register adds the flags of run, with those of a spec.
func (o *runOptions) register(fs *pflag.FlagSet, f *specFlags) {
	f.register(fs)
	fs.BoolVar(&f.oversubscribe, "oversubscribe", false, "with -H or --hostfile: more tasks than slots")
	fs.StringVar(&o.launch.agent, "launch-agent", "ssh", "`PROGRAM` by which other hosts are reached, with its arguments: called with a host and a command, as ssh is")
	fs.BoolVar(&o.launch.copyBinary, "copy-binary", false, "have other hosts execute this very program: a copy in ~/.cache/clusterrun, made where it is missing")
	fs.StringVar(&o.id, "id", "", "run `ID`; default: the name and a random part")
	fs.StringVar(&o.foreground, "foreground", "", "the `TASK` that gets this terminal, or stdin, stdout and stderr, such as chief-0")
	fs.StringVar(&o.stdin, stdinFlag, "", "who reads stdin: none, all or one `TASK` (default the first task, where stdin is a pipe or a file)")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "do not show the output of the processes, nor a good end")
	fs.BoolVar(&o.remote, "remote", false, "run on the host workers that serve the queue, show what is written there, and wait")
	fs.StringVar(&o.queue, "queue", spec.TaskQueue, "with --remote: task `QUEUE` of the host workers")
	o.signing.register(fs, "with --remote: ")
	fs.IntVar(&o.coordinator, coordinatorFlag, 0, "descriptor `FD` of a socket, on which the owner of the run schedules closures as with `clusterrun coordinate`; the run ends with it")
	_ = fs.MarkHidden(coordinatorFlag)
}

// runSpec runs a spec as the options say. args are where it is from, where they name that.
func (a *app) runSpec(cmd *cobra.Command, args []string, s *spec.RunSpec, f *specFlags, o *runOptions) error {
	if err := checkID(cmd, o.id); err != nil {
		return err
	}
	if err := checkForeground(s, *o); err != nil {
		return err
	}
	if err := a.setStdin(cmd, args, s, f, o); err != nil {
		return err
	}
	if o.remote {
		if err := f.refuseOthers("run --remote"); err != nil {
			return err
		}
		a.sayUnsent(cmd, args, s)
		return a.runRemote(cmd, s, *o)
	}
	if o.signing.wanted() {
		return usagef("--sign and --sign-key are for --remote: without it the run is executed here, as you")
	}
	if cmd.Flags().Changed("queue") {
		return usagef("--queue is for --remote: without it the run is executed here")
	}
	if _, _, err := a.external(cmd.Context()); err != nil {
		return err
	}
	if o.others = f.others; o.others != nil {
		a.sayUnsent(cmd, args, s)
	} else {
		a.sayRanks(cmd, args, s)
	}
	if err := prepareHere(s, *o); err != nil {
		return err
	}
	if cmd.Flags().Changed(coordinatorFlag) && o.coordinator < lifelineFD {
		return usagef("--%s %d: want the descriptor of a socket, such as %d", coordinatorFlag, o.coordinator, lifelineFD)
	}
	if o.others == nil && !o.quiet && o.coordinator == 0 {
		a.sayThreads(s)
		if f.given("devices") && f.flags.Lookup("devices").Value.String() == "auto" && here().gpus == 0 {
			a.say("--devices auto: no GPU is seen on this machine, and the tasks share none")
		}
	}
	return a.runHere(cmd.Context(), s, *o)
}

// maxID is well below the server's own limit, and fit for a directory's name.
const maxID = 200

// checkID refuses what is no run ID. Any text is one for the server, but people
// have to type it, and it names log directories.
func checkID(cmd *cobra.Command, id string) error {
	switch {
	case !cmd.Flags().Changed("id"):
	case id == "":
		return usagef("--id is empty; give one, or leave it out")
	case len(id) > maxID:
		return usagef("--id has %d bytes; give at most %d", len(id), maxID)
	case strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }):
		return usagef("--id %q has spaces, quotes, backslashes or characters that are not ASCII; leave those out", id)
	}
	return nil
}

// checkRun refuses what is the ID of no run, and what requests to the server cannot
// carry in their headers.
func checkRun(id string) error {
	switch {
	case id == "":
		return usagef("RUN is empty; give the ID of a run, as `clusterrun list` shows it")
	case strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r > '~' }):
		return usagef("%q is no run ID: it has characters that are not ASCII; `clusterrun list` shows the runs there are", id)
	}
	return nil
}
