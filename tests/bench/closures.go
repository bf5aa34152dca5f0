package bench

import (
	"context"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
)

// Closures returns the time from scheduling to value for each of several closures in sequence.
// The coordinator is outside the run. l is clusterrun, which starts four tasks. c is a client for
// the same server.
func (p *Place) Closures(ctx context.Context, l *Launcher, c client.Client, times int) (Series, error) {
	id := starter.NewID("bench")
	tasks, err := p.launch(ctx, func(dir string, n int, argv []string) ([]string, error) {
		line, err := l.Launch(dir, n, argv)
		return slices.Insert(line, slices.Index(line, "--"), "--id", id), err
	}, 4, append(slices.Clone(p.program), "serve"))
	if err != nil {
		return nil, err
	}
	defer tasks.abort()
	if _, _, err := tasks.await(ctx, 4); err != nil {
		return nil, err
	}
	coordinator, err := clustercoordinator.New(ctx, starter.Get(c, id, ""))
	if err != nil {
		return nil, err
	}
	defer coordinator.Close()
	const first = 20 // are not measured
	var took Series
	for i := range first + times {
		started := time.Now()
		v, err := coordinator.Schedule(ctx, "f", i)
		if err != nil {
			return nil, err
		}
		if _, err := clustercoordinator.Get[int](ctx, v); err != nil {
			return nil, err
		}
		if i >= first {
			took = append(took, time.Since(started))
		}
	}
	return took, tasks.finish(false)
}
