package cli

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/internal/unexecuted"
	"github.com/clusterrun/clusterrun/starter/rundir"
	"github.com/clusterrun/clusterrun/workers/connect"
)

// abandonedBound limits the time spent on abandoned runs.
const abandonedBound = 10 * time.Second

// abandonedPatience limits how long a finished command waits for this.
const abandonedPatience = time.Second

// startSettles is how long the server may take to carry out a start after its client has gone.
// Until then the run may be unknown to the server.
const startSettles = time.Minute

// EndAbandoned ends this user's runs with killed owners. No worker polls their private queues, so
// they would stay open forever. EndAbandoned returns immediately; done waits up to
// [abandonedPatience] for it to finish. The next command retries the rest.
func EndAbandoned(ctx context.Context, a *App, c client.Client, s Target) (done func()) {
	return endEachAbandoned(ctx, a, func(ctx context.Context, d *rundir.Dir) { endOne(ctx, a, d, c, s) })
}

// endAbandonedOf is like [EndAbandoned] for one server's runs. It skips runs with a live
// supervisor, which may still report how its run has ended. Commands that execute nothing call
// it, so that other servers do not delay them.
func endAbandonedOf(ctx context.Context, a *App, c client.Client, s Target) (done func()) {
	return endEachAbandoned(ctx, a, func(ctx context.Context, d *rundir.Dir) {
		r, err := d.Load()
		if err != nil || r.RunID != "" && !isOf(r, s) || !Sweep(d.Path) {
			d.Close()
			return
		}
		endOne(ctx, a, d, c, s)
	})
}

func endEachAbandoned(ctx context.Context, a *App, end func(context.Context, *rundir.Dir)) (done func()) {
	dirs, err := rundir.Abandoned(a.RunsDir())
	if err != nil || len(dirs) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithTimeout(ctx, abandonedBound)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for _, d := range dirs {
			end(ctx, d)
		}
	}()
	return func() {
		defer cancel()
		select {
		case <-finished:
		case <-time.After(abandonedPatience):
		}
	}
}

// endOne ends an abandoned directory's run. On failure, it keeps the directory for the next
// command.
func endOne(ctx context.Context, a *App, d *rundir.Dir, c client.Client, s Target) {
	defer d.Close()
	r, err := d.Load()
	if err != nil {
		return
	}
	if r.RunID != "" {
		if err := TerminateAbandoned(ctx, a, r, c, s); err != nil {
			return
		}
	}
	if Sweep(d.Path) {
		_ = d.Remove()
	}
}

func TerminateAbandoned(ctx context.Context, a *App, r rundir.Record, c client.Client, s Target) error {
	c, closeClient, err := clientOf(ctx, a, r, c, s)
	if err != nil {
		return err
	}
	defer closeClient()
	run := starter.Get(c, r.RunID, "")
	known, err := run.Summary(ctx)
	switch {
	case starter.IsError[*starter.NotFoundError](err) && time.Since(r.Started) < startSettles:
		return err
	case starter.IsError[*starter.NotFoundError](err), starter.IsError[*starter.EndedError](err):
		return nil
	case err != nil:
		return err
	}
	// On another queue, a run with the same ID belongs to a different owner.
	if known.Queue != r.Queue {
		return nil
	}
	if err := unexecuted.End(ctx, run, OwnerGone); err != nil {
		return err
	}
	if known.Open {
		a.Say("run %s was still open although its owner had exited; stopped it", r.RunID)
	}
	return nil
}

const OwnerGone = "its owner has exited"

// isOf reports whether an abandoned run was started on server s.
func isOf(r rundir.Record, s Target) bool {
	return r.Embedded == s.Embedded && (s.Embedded || r.Server == s.Options)
}

// clientOf returns a client for an abandoned run's server. This is usually c.
func clientOf(ctx context.Context, a *App, r rundir.Record, c client.Client, s Target) (client.Client, func(), error) {
	if isOf(r, s) {
		return c, func() {}, nil
	}
	if r.Embedded {
		up, err := a.Home().Find(ctx)
		if err != nil {
			return nil, nil, err
		}
		if up == nil {
			return nil, nil, ErrNoServer
		}
		r.Server = a.Embedded(up).Options
	}
	other, err := connect.Dial(ctx, r.Server, a.Logger(), DialTimeout)
	if err != nil {
		return nil, nil, err
	}
	return other, other.Close, nil
}

// Sweep kills processes that a dead supervisor left behind in its state directory. It returns
// false if a supervisor is still running there.
func Sweep(dir string) bool {
	if supervisor.InstanceIn(dir) == "" {
		return true // no supervisor ever ran there
	}
	state, err := supervisor.OpenState(dir)
	if err != nil {
		return false
	}
	state.Close()
	return true
}
