package measure

import (
	"context"
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
)

// Lone returns the time of each of several closures scheduled one after the other, from
// scheduling it to its value. The tasks serve f, which returns its argument.
func Lone(ctx context.Context, c *clustercoordinator.Coordinator, times int) (Series, error) {
	var took Series
	for i := range times {
		started := time.Now()
		v, err := c.Schedule(ctx, "f", i)
		if err != nil {
			return nil, err
		}
		if _, err := clustercoordinator.Get[int](ctx, v); err != nil {
			return nil, err
		}
		took = append(took, time.Since(started))
	}
	return took, nil
}

// Flood schedules closures as fast as they can be, fetches all values and checks them. It
// returns how many there are in a second.
func Flood(ctx context.Context, c *clustercoordinator.Coordinator, count int) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	started := time.Now()
	values := make(chan *clustercoordinator.RemoteValue, 20_000)
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		i := 0
		for v := range values {
			n, err := clustercoordinator.Get[int](ctx, v)
			if err == nil && n != i {
				err = fmt.Errorf("closure %d has the value %d", i, n)
			}
			if err != nil {
				cancel(err)
				return
			}
			i++
		}
	}()
	schedule := func() error {
		defer close(values)
		for i := range count {
			v, err := c.Schedule(ctx, "f", i)
			if err != nil {
				return err
			}
			select {
			case values <- v:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
	err := schedule()
	<-checked
	if wrong := context.Cause(ctx); wrong != nil {
		return 0, wrong
	}
	if err == nil {
		err = c.Join(ctx)
	}
	return float64(count) / time.Since(started).Seconds(), err
}
