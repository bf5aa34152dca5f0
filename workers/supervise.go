package workers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/undumpable"
)

// optionsVar carries [Options] to the side.
const optionsVar = "CLUSTERRUN_WORKER_OPTIONS"

// Owner is what a host worker has inherited from whoever started it for runs of
// their own; a worker that serves everybody has nothing of it.
type Owner struct {
	// Lifeline reaches its end when the owner is gone.
	Lifeline *os.File
	// Stdin, Stdout and Stderr are for tasks; see [Options].
	Stdin, Stdout, Stderr *os.File
}

// Supervise becomes the supervisor of a host worker and returns when that has
// ended: after ctx, after SIGTERM or SIGINT, or when the owner's lifeline has.
// command is how to execute [Side] in a child. It fails at once when another
// worker holds the state directory.
func Supervise(ctx context.Context, o Options, command []string, owner Owner) error {
	if err := undumpable.Set(); err != nil {
		return err
	}
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	log, err := newLogger(o.Debug)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }()
	state, err := supervisor.OpenState(o.StateDir)
	if err != nil {
		return err
	}
	defer state.Close()
	if err := o.checkListen(); err != nil {
		return err
	}
	options, err := json.Marshal(o)
	if err != nil {
		return err
	}
	ctx, killNow, stop := endings(ctx)
	defer stop()
	go returnMemory(ctx)
	return supervisor.Run(ctx, supervisor.Config{
		State: state, Side: command,
		SideEnv:     []string{optionsVar + "=" + string(options)},
		Lifeline:    owner.Lifeline,
		Owner:       supervisor.Owner{Stdin: owner.Stdin, Stdout: owner.Stdout, Stderr: owner.Stderr},
		OrphanGrace: o.OrphanGrace,
		KillNow:     killNow,
		Log:         log,
	})
}

// endings has the context end with the first signal that asks us to, and the
// channel close with the second: whoever asks twice wants no more graces.
func endings(ctx context.Context) (context.Context, <-chan struct{}, func()) {
	ctx, cancel := context.WithCancel(ctx)
	killNow := make(chan struct{})
	signals := make(chan os.Signal, 2)
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		// Who starts us with one ignored, as nohup does, means it.
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	go func() {
		<-signals
		cancel()
		<-signals
		close(killNow)
	}()
	return ctx, killNow, func() {
		signal.Stop(signals)
		cancel()
	}
}

func (o Options) withDefaults() (Options, error) {
	if o.StateDir == "" {
		return o, fmt.Errorf("a host worker needs a state directory")
	}
	if o.Host == "" {
		name, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("find the name of this host (or give one with --host-name): %w", err)
		}
		o.Host = name
	}
	if o.Queue == "" {
		o.Queue = defaultQueue
	}
	if o.OrphanGrace == 0 {
		o.OrphanGrace = 2 * time.Second
	}
	return o, nil
}
