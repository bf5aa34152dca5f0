package command

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func (a *app) workerCommand() *cobra.Command {
	var (
		host, queue, logDir, memory string
		listen, advertise           string
		policyFile, audit           string
		metered                     meteredAt
		slots, gpus                 int
		labels                      map[string]string
		keep                        keepLogs
		role                        string
		background                  detached
		idleExit                    time.Duration
		onDemand                    bool
	)
	cmd := &cobra.Command{
		Use:   "worker [flags]",
		Short: "Serve runs on this host, in the foreground or the background",
		Long: `Serves runs that are submitted to the queue: starts their processes on this host,
supervises them, and reports how they ended. It runs in the foreground until
SIGTERM or Ctrl-C, or until its terminal closes (SIGHUP); its processes are then
stopped. Where it was started without a terminal, SIGHUP puts the program on disk in
its place, without touching them (see worker upgrade). One worker at a time uses a
state directory, and one a host name on a queue.

With --detach all this happens in the background, without a terminal: the command
returns when runs are served, and ` + "`clusterrun worker stop`" + ` ends the worker. What it has
to say goes to worker.log, below the state directory. With --idle-exit it ends by itself
when no run has been on this host for so long. A submit that finds nobody to serve the
server that clusterrun brings up starts such a worker, for 10 minutes without runs.

With --role host it serves no workflow, and with --role controller nothing else: it
starts no process and has no slots. A queue needs both. So the server can be told, by
the certificates of its clients, what each may do:

  both         GetSystemInfo, DescribeNamespace, ShutdownWorker, and RecordWorkerHeartbeat
               and PollNexusTaskQueue of the SDK
  controller   PollWorkflowTaskQueue of QUEUE and of sticky queues, RespondWorkflowTask...,
               RespondQueryTaskCompleted, GetWorkflowExecutionHistory
  host NAME    PollActivityTaskQueue of QUEUE/hosts and QUEUE/host/NAME/...,
               RespondActivityTask..., RecordActivityTaskHeartbeat; for the fleet, barriers,
               closures and what tasks ask: StartWorkflowExecution, SignalWorkflowExecution,
               SignalWithStartWorkflowExecution, ExecuteMultiOperation, UpdateWorkflowExecution,
               PollWorkflowExecutionUpdate, QueryWorkflow, DescribeWorkflowExecution,
               GetWorkflowExecutionHistory

Exit codes:
  0    stopped as asked; with --detach: it runs, or did already
  2    mistake in the command line
  125  the state directory or the host name is in use, or the worker failed`,
		Example: `  clusterrun worker --address temporal.example:7233 --slots 8
  clusterrun worker --detach --idle-exit 1h
  clusterrun worker --label rack=r7 --slots 16
  clusterrun worker --host-name host-a   # specs pin tasks to it with "host-a:2222"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if slots < 0 {
				return usagef("--slots %d: give 1 or more, or 0 for no bound", slots)
			}
			if host != "" && spec.IsLoopback(host) {
				return usagef("--host-name %s means every machine; give a name that others know this one by", host)
			}
			if role := workers.Role(role); role != workers.RoleHost && role != workers.RoleController && role != workers.RoleBoth {
				return usagef("--role %q: give host, controller or both", role)
			}
			if workers.Role(role) == workers.RoleController {
				for _, name := range []string{"slots", "gpus", "memory", "label", "log-dir", "listen", "advertise", "keep-logs", "max-logs"} {
					if cmd.Flags().Changed(name) {
						return usagef("--%s is for hosts, and a controller executes nothing; leave it out, or give --role both", name)
					}
				}
				listen = listenOff
			}
			if idleExit < 0 {
				return usagef("--idle-exit %s: give a time such as 10m, or 0 for a worker that stays", idleExit)
			}
			ctx, stop := endedBy(cmd.Context())
			defer stop()
			if logDir == "" {
				logDir = a.logsDir()
			} else {
				// Runs tell others where it is.
				dir, err := filepath.Abs(logDir)
				if err != nil {
					return usagef("--log-dir: %s; give an absolute path", err)
				}
				if err := checkPath("--log-dir", dir, "give another"); err != nil {
					return err
				}
				logDir = dir
			}
			o := workers.Options{
				StateDir: a.workerDir(), KeyDir: a.global.stateDir, Host: host, Queue: queue, Slots: slots, LogRoot: logDir, Debug: a.debug(),
				Listen: listen, ListenAs: advertise, Labels: labels, Role: workers.Role(role),
				IdleExit: idleExit,
			}
			for _, f := range []struct {
				flag, given string
				path        *string
			}{{"--policy", policyFile, &o.Policy}, {"--audit", audit, &o.Audit}} {
				var err error
				if f.given == "" {
					continue
				}
				if *f.path, err = filepath.Abs(f.given); err != nil {
					return usagef("%s: %s; give an absolute path", f.flag, err)
				}
			}
			var err error
			if o.Retention, err = keep.policy(a.global.stateDir); err != nil {
				return err
			}
			if o.Metrics, err = metered.address(); err != nil {
				return err
			}
			if err := o.CheckPolicy(); err != nil {
				return usagef("%s", err)
			}
			if o.Policy != "" && os.Geteuid() == 0 {
				// Users pass through it to what is theirs.
				if err := os.MkdirAll(a.global.stateDir, 0o711); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("gpus") {
				if gpus < 0 {
					return usagef("--gpus %d: give 0 or more", gpus)
				}
				o.GPUs = &gpus
			}
			if memory != "" {
				var err error
				if o.Memory, err = spec.ParseSize(memory); err != nil {
					return usagef("--memory: %v", err)
				}
			}
			if advertise != "" {
				var err error
				if o.Advertise, _, err = spec.SplitAddress(advertise); err != nil {
					return usagef("--advertise: %s", err)
				}
			}
			if background.parent() {
				return a.detachWorker(ctx)
			}
			background.closeOnExec()
			return a.serve(ctx, o, &background, onDemand)
		},
	}
	cmd.AddCommand(a.workerUpgradeCommand(), a.workerStopCommand())
	background.register(cmd, "runs are served")
	cmd.Flags().DurationVar(&idleExit, "idle-exit", 0, "end when no run has been on this host for `TIME`; default: never")
	cmd.Flags().BoolVar(&onDemand, onDemandFlag, false, "this worker was started by another command")
	_ = cmd.Flags().MarkHidden(onDemandFlag)
	cmd.Flags().StringVar(&role, "role", string(workers.RoleBoth), "`ROLE` of this worker: host, controller or both")
	cmd.Flags().StringVar(&host, "host-name", "", "`NAME` by which specs pin tasks to this host (default: the machine's)")
	cmd.Flags().IntVar(&slots, "slots", runtime.GOMAXPROCS(0), "most tasks at a time (`NUMBER`); 0 for no bound")
	cmd.Flags().StringToStringVar(&labels, "label", nil, "a label by which specs find this host, as `KEY=VALUE`; may be repeated")
	cmd.Flags().IntVar(&gpus, "gpus", 0, "`NUMBER` of GPUs that tasks may have (default: those that are found)")
	cmd.Flags().StringVar(&memory, "memory", "", "memory that tasks may have, as a `SIZE` such as 64GiB, for constraints (default: what is found)")
	cmd.Flags().StringVar(&queue, "queue", spec.TaskQueue, "task `QUEUE` to serve")
	cmd.Flags().StringVar(&logDir, "log-dir", "", "`DIRECTORY` for the output of runs that name none; default: logs, below the state directory")
	keep.register(cmd)
	metered.register(cmd)
	cmd.Flags().StringVar(&policyFile, "policy", "", "`FILE` that says what this host runs, for whom and as which user; what it does not allow is denied (see policy)")
	cmd.Flags().StringVar(&audit, "audit", "", "`FILE` that gets a line of JSON for each start, refusal and request; a start that it cannot take is refused")
	cmd.Flags().StringVar(&listen, "listen", "", "`ADDRESS` (HOST:PORT, HOST or :PORT) at which this host serves the output of its runs to `clusterrun logs` elsewhere, or off; "+
		"default: a free port of all addresses, and off with a server on this machine")
	cmd.Flags().StringVar(&advertise, "advertise", "", "`HOST[:PORT]` by which others reach this host, its tasks and what it serves; default: the host name for tasks, and else the address by which it reaches the server")
	return cmd
}

// listenOff is the value of --listen for a host that serves nothing.
const listenOff = "off"

// listenAddress returns where a host worker of that server serves output. Whoever has the
// server on this machine can read the files here.
func listenAddress(given string, s server) (string, error) {
	switch given {
	case listenOff:
		return "", nil
	case "":
		address, err := s.HostPort()
		if host, _, splitErr := net.SplitHostPort(address); err != nil || splitErr == nil && spec.IsLoopback(host) {
			return "", err
		}
		return ":0", nil
	}
	return given, nil
}

// onDemandFlag marks a worker that nobody has started by hand.
const onDemandFlag = "on-demand"

// serve becomes the supervisor of a host worker.
func (a *app) serve(ctx context.Context, o workers.Options, b *detached, onDemand bool) error {
	if !b.child() {
		if err := a.takeItsPlace(ctx); err != nil {
			return err
		}
	}
	s, err := a.bringUp(ctx)
	if err != nil {
		return err
	}
	o.Server = s.Options
	if o.Listen, err = listenAddress(o.Listen, s); err != nil {
		return err
	}
	a.keep(ctx, s)
	if c, err := connect.Dial(ctx, s.Options, a.logger(), dialTimeout); err != nil {
		// At boot the server may come later than we do.
		a.say("%s\nwaiting for it", err)
	} else {
		err := o.CheckAllowed(ctx, c)
		if err == nil {
			a.endAbandoned(ctx, c, s)()
			if o.Role != workers.RoleController {
				err = o.CheckName(ctx, c)
			}
		}
		c.Close()
		if err != nil {
			return err
		}
	}
	side, err := sideCommand()
	if err != nil {
		return err
	}
	what := "host worker"
	if o.Role == workers.RoleController {
		what = "controller"
	}
	program, err := ownProgram()
	if err != nil {
		return err
	}
	owner := workers.Owner{Program: program}
	ends := "Ctrl-C"
	if b.child() {
		ends = "`clusterrun worker stop`"
		owner.Serving = a.serving(b, o, onDemand)
		defer forgetBackground(o.StateDir)
	}
	a.say("%s for the queue %s of %s; %s ends it", what, o.Queue, s, ends)
	return workers.Supervise(ctx, o, side, owner)
}
