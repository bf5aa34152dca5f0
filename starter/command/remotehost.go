package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/starter/hosts/remotehosts"
	"github.com/clusterrun/clusterrun/starter/rundir"
	"github.com/clusterrun/clusterrun/workers"
)

// RemoteHost returns the command that run executes on hosts that it reaches by a
// launch agent.
func RemoteHost(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    remotehosts.Command,
		Short:  "A host of a run; started by `clusterrun run -H` over ssh",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := endedBy(cmd.Context())
			defer stop()
			// That the connection has broken is seen where it is read.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
			sweepHosts(a)
			return remotehosts.Serve(ctx, os.Stdin, os.Stdout, remotehosts.ServeConfig{
				Version: versionLine(), Parent: hostsDir(a), StartWorker: startRemoteWorker,
			})
		},
	}
}

// hostsDir holds the directories of runs of other machines.
func hostsDir(a *app) string { return filepath.Join(a.global.stateDir, "hosts") }

// remoteWorker is the host worker of a run of another machine.
type remoteWorker struct {
	*hostWorker
	stopped chan struct{} // closed when no successor is started any more
}

func startRemoteWorker(o workers.Options, stdin *os.File, died func(error)) (remotehosts.Worker, error) {
	w, err := startHostWorker(o, standardFiles{in: stdin})
	if err != nil {
		return nil, err
	}
	r := &remoteWorker{hostWorker: w, stopped: make(chan struct{})}
	go r.keep(died)
	return r, nil
}

// keep starts successors of a host worker that died, which say what became of its processes.
func (r *remoteWorker) keep(died func(error)) {
	defer close(r.stopped)
	for successors := 0; ; successors++ {
		err := <-r.exited
		switch {
		case r.isCut() || r.isTold():
			return
		case successors == maxSuccessors:
			died(fmt.Errorf("the host worker keeps dying (%w):\n%s", err, r.lastWords()))
			return
		}
		if err := r.start(nil); err != nil {
			died(err)
			return
		}
	}
}

// StopAll implements [remotehosts.Worker].
func (r *remoteWorker) StopAll(how supervisor.StopAll) { r.stopAll(how) }

// Stop implements [remotehosts.Worker].
func (r *remoteWorker) Stop(ctx context.Context) {
	r.cut()
	select {
	case <-r.stopped:
	case <-ctx.Done():
	}
}

// sweepHosts removes what runs have left here whose program on this host was killed. It
// returns at once.
func sweepHosts(a *app) {
	dirs, err := rundir.Abandoned(hostsDir(a))
	if err != nil {
		return
	}
	go func() {
		for _, d := range dirs {
			if sweep(d.Path) {
				_ = d.Remove()
			}
		}
	}()
}
