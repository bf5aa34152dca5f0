package worker

import (
	"context"
	"net"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/system/detach"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workers"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func Worker(a *cli.App) *cobra.Command {
	var (
		f          workerFlags
		background Detached
		idleExit   time.Duration
		onDemand   bool
	)
	cmd := &cobra.Command{
		Use:   "worker [flags]",
		Short: "Serve runs on this host, in the foreground or the background",
		Long: `Serves submitted runs of the queue: it starts their processes on this host, supervises them,
and reports how they ended. It runs in the foreground until SIGTERM or Ctrl-C, or until its
terminal closes (SIGHUP), and then stops its processes. If it was started without a
terminal, SIGHUP upgrades it to the program on disk without touching them (see worker
upgrade). A state directory, and a host name on a queue, can be used by one worker at a
time.

With --detach all this happens in the background, without a terminal: the command returns
when runs are served, and ` + "`clusterrun worker stop`" + ` ends the worker. Its messages go to
worker.log in the state directory. With --idle-exit it ends when no run has been on this
host for that time. If no worker serves the embedded server, submit starts such a worker, which
ends after 10 minutes without runs and, like that of dev, takes a run with more tasks than it
has slots when nothing else runs. That one begins like a service, and not with what the
shell has set for itself: nice 0, all processors, umask 022, the limits of process 1 as far
as it may have them, the home directory, and of the environment PATH, HOME, the language,
proxies and the like. Processes get more of it by -x and --env-from-shell. To serve runs
after each boot, see worker install.

With --check the host gets tasks only while it passes checks: before it takes any, before each
start of a run's tasks, and while it has none. The first ones below are built in; a check of
yours is a command for sh that exits with 0, such as --check 'nfs=test -w /mnt/data'. A host
that fails is cordoned, and gets tasks again once the check succeeds:
` + checksText() + `
With --role host it executes no workflows. With --role controller it executes nothing else:
it starts no processes and has no slots. A queue needs both. A server can therefore
restrict, by the certificates of its clients, what each may do:
  both         GetSystemInfo, DescribeNamespace, ShutdownWorker, and RecordWorkerHeartbeat
               and PollNexusTaskQueue of the SDK
  controller   PollWorkflowTaskQueue of QUEUE and of sticky queues, RespondWorkflowTask...,
               RespondQueryTaskCompleted, GetWorkflowExecutionHistory; for Nexus operations:
               RespondNexusTask..., StartWorkflowExecution, DescribeWorkflowExecution,
               RequestCancelWorkflowExecution
  host NAME    PollActivityTaskQueue of QUEUE/hosts and QUEUE/host/NAME/...,
               RespondActivityTask..., RecordActivityTaskHeartbeat; for the fleet, barriers,
               closures and what tasks ask: StartWorkflowExecution, SignalWorkflowExecution,
               SignalWithStartWorkflowExecution, ExecuteMultiOperation, UpdateWorkflowExecution,
               PollWorkflowExecutionUpdate, QueryWorkflow, DescribeWorkflowExecution,
               GetWorkflowExecutionHistory; for --check clock: DescribeTaskQueue, and
               PollWorkflowTaskQueue of a sticky queue

Exit codes:
  0    stopped as requested; with --detach: it runs, or already did
  2    mistake in the command line
  125  the state directory or the host name is in use, or the worker failed`,
		Example: `  clusterrun worker --address temporal.example:7233 --slots 8
  clusterrun worker --detach --idle-exit 1h
  clusterrun worker install --user --enable   # as a service
  clusterrun worker --label rack=r7 --slots 16
  clusterrun worker --host-name host-a   # specs pin tasks to it with "host-a:2222"`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if idleExit < 0 {
				return cli.Usagef("--idle-exit %s: give a time such as 10m, or 0 for a worker that stays", idleExit)
			}
			ctx, stop := cli.EndedBy(cmd.Context())
			defer stop()
			o, err := f.options(a, cmd)
			if err != nil {
				return err
			}
			o.IdleExit, o.Oversubscribe = idleExit, onDemand
			if o.Policy != "" && os.Geteuid() == 0 {
				// Users need to pass through it to their own files.
				if err := os.MkdirAll(a.Global.StateDir, 0o711); err != nil {
					return err
				}
			}
			if background.Parent() {
				return detachWorker(ctx, a)
			}
			background.CloseOnExec()
			if onDemand {
				detach.RaiseLimits(0)
			}
			return serve(ctx, a, o, &background, onDemand)
		},
	}
	cmd.AddCommand(workerInstallCommand(a), workerStopCommand(a), workerUpgradeCommand(a))
	background.Register(cmd, "runs are served")
	cmd.Flags().DurationVar(&idleExit, "idle-exit", 0, "end when no run has been on this host for this `TIME`; default: never")
	cmd.Flags().BoolVar(&onDemand, onDemandFlag, false, "this worker was started by another command")
	_ = cmd.Flags().MarkHidden(onDemandFlag)
	f.register(cmd)
	return cmd
}

// listenOff is the value of --listen for a host that serves nothing.
const listenOff = "off"

// listenAddress returns the address at which a host worker of that server serves output. If the
// server is on this machine, so are its clients, and they read the files.
func listenAddress(given string, s cli.Server) (string, error) {
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

// onDemandFlag marks a worker that a user did not start by hand.
const onDemandFlag = "on-demand"

// serve becomes the supervisor of a host worker.
func serve(ctx context.Context, a *cli.App, o workers.Options, b *Detached, onDemand bool) error {
	if !b.child() {
		if err := StopOnDemand(ctx, a); err != nil {
			return err
		}
	}
	if err := workers.CheckMetrics(workers.MetricsFlag, o.Metrics); err != nil {
		return err
	}
	s, err := a.BringUp(ctx)
	if err != nil {
		return err
	}
	o.Server = s.Options
	if o.Listen, err = listenAddress(o.Listen, s); err != nil {
		return err
	}
	cli.Keep(ctx, a, s)
	if c, err := connect.Dial(ctx, s.Options, a.Logger(), cli.DialTimeout); err != nil {
		// At boot the server may start later than we do.
		a.Say("%s\nwaiting for it", err)
	} else {
		err := o.CheckAllowed(ctx, c)
		if err == nil {
			cli.EndAbandoned(ctx, a, c, s)()
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
		owner.Serving = serving(a, b, o, onDemand)
		defer forgetBackground(o.StateDir)
	}
	a.Say("%s for the queue %s of %s; %s ends it", what, o.Queue, s, ends)
	return workers.Supervise(ctx, o, side, owner)
}
