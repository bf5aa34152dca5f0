package workers

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/undumpable"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// optionsVar carries [Options] to the side.
const optionsVar = "CLUSTERRUN_WORKER_OPTIONS"

// Owner has the files that a host worker inherits from the process that started it for runs of
// its own. A worker that serves every user has only Program.
type Owner struct {
	// Lifeline is a pipe that ends when the owner is gone.
	Lifeline *os.File
	// Side is a socket to an [OwnersSide]. If it is nil, the supervisor starts a side.
	Side *os.File
	// Stdin, Stdout and Stderr are for tasks; see [Options].
	Stdin, Stdout, Stderr *os.File
	// Program is the file of the program to which the host worker is upgraded on request. If it
	// is empty, the worker cannot be upgraded.
	Program string
	// Serving is called each time that the side serves as a member of the fleet. It may be nil.
	Serving func()
}

// Supervise becomes the supervisor of a host worker and returns when it has ended: after ctx,
// SIGTERM, SIGINT or [supervisor.SignalEnd], or the end of the owner's lifeline. command is the
// command line that executes [Side] in a child. It fails at once if another worker holds the
// state directory.
func Supervise(ctx context.Context, o Options, command []string, owner Owner) error {
	if err := undumpable.Set(); err != nil {
		return err
	}
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	state, err := supervisor.OpenStateWith(o.StateDir, supervisor.StateOptions{Instance: o.Instance, Volatile: o.Owned})
	if err != nil {
		return err
	}
	defer state.Close()
	if err := o.checkListen(); err != nil {
		return err
	}
	if err := CheckMetrics(MetricsFlag, o.Metrics); err != nil {
		return err
	}
	return supervise(ctx, o, state, command, owner)
}

// supervise runs the supervisor of a state.
func supervise(ctx context.Context, o Options, state *supervisor.State, command []string, owner Owner) error {
	log, err := newLogger(o.Debug, stderr)
	if err != nil {
		return err
	}
	defer log.Sync() //nolint:errcheck // it has none
	options, err := json.Marshal(o)
	if err != nil {
		return err
	}
	c := supervisor.Config{
		State: state, Side: command,
		SideEnv:     []string{optionsVar + "=" + string(options)},
		Lifeline:    owner.Lifeline,
		OwnersSide:  owner.Side,
		Owner:       supervisor.Owner{Stdin: owner.Stdin, Stdout: owner.Stdout, Stderr: owner.Stderr},
		OrphanGrace: o.OrphanGrace, LongestGrace: o.LongestGrace,
		Log:     log,
		Ignored: supervisor.Ignored(), // before anybody listens
	}
	// A host worker with a program may be a service; the others are children of a command.
	service := owner.Program != ""
	if service {
		c.Serving = func() {
			tellService(log, serviceReady)
			if owner.Serving != nil {
				owner.Serving()
			}
		}
	}
	ends, upgrades := []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}, []os.Signal(nil)
	if service {
		c.Upgrade = &supervisor.Upgrade{Path: owner.Program, Check: checkArgs, Version: spec.Version}
		// With a terminal, SIGHUP comes from the terminal or its shell.
		if !hasTerminal() {
			ends, upgrades = ends[:2], ends[2:]
		}
	}
	ctx, end, stop := c.ObeySignals(ctx, ends, upgrades)
	if service {
		context.AfterFunc(ctx, func() { tellService(log, serviceStopping) })
	}
	if o.IdleExit > 0 {
		go o.endWhenIdle(ctx, log, end)
	}
	go returnMemory(ctx)
	err = supervisor.Run(ctx, c)
	stop()
	return err
}

func (o Options) withDefaults() (Options, error) {
	if o.StateDir == "" {
		return o, fmt.Errorf("a host worker needs a state directory")
	}
	if o.Host == "" {
		name, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("find the name of this host: %w; or give one with --host-name", err)
		}
		o.Host = name
	}
	o.Queue = cmp.Or(o.Queue, defaultQueue)
	o.OrphanGrace = cmp.Or(o.OrphanGrace, 2*time.Second)
	return o, nil
}
