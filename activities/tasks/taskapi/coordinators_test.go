package taskapi

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/memoryqueue"
)

// coordinatedHost is a host with coordinating tasks.
type coordinatedHost struct {
	*host
	queue *memoryqueue.Queue
}

func newCoordinated(t *testing.T, size int, functions map[string]memoryqueue.Function) *coordinatedHost {
	t.Helper()
	h := &coordinatedHost{host: newHostWith(t, 2, newTogether()), queue: memoryqueue.New(size, functions)}
	t.Cleanup(func() { h.queue.End("the test is over") })
	h.kill()
	return h
}

// kill stops the host without notice, and starts the next one.
func (h *coordinatedHost) kill() {
	h.t.Helper()
	require.NoError(h.t, h.Close())
	h.schedules = func(context.Context, runkey.Task) (closurequeue.Queue, error) { return h.queue, nil }
	h.start()
}

func same(_ context.Context, args []any, kwargs map[string]any) (any, error) {
	if len(kwargs) > 0 {
		return []any{args, kwargs}, nil
	}
	return args[0], nil
}

func forever(ctx context.Context, _ []any, _ map[string]any) (any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestBadCoordinatorsAreRefused(t *testing.T) {
	h := newHost(t, 1)
	p := h.refused(501, wire.CodeNotThere, "POST", wire.PathCoordinator, "")
	assert.Equal(t, "this host worker does not let its tasks schedule closures", p.Message)
	c := newCoordinated(t, 0, nil)
	p = c.refused(400, wire.CodeInvalid, "POST", wire.PathCoordinator, `{"client":"s","first":1,"closures":[{"function":""},{"function":""}]}`)
	assert.Equal(t, "closures[0].function", p.Field)
	assert.Contains(t, p.Message, "missing; name a function that the tasks have registered (and 1 more problems)")
}

// A waiting coordinator gets an answer when this host releases the run.
func TestWaitingCoordinatorsAreReleased(t *testing.T) {
	h := newCoordinated(t, 0, map[string]memoryqueue.Function{"forever": forever})
	var all sync.WaitGroup
	all.Go(func() {
		p := h.refused(409, wire.CodeOver, "POST", wire.PathCoordinator, `{"client":"s","first":1,"closures":[{"function":"forever"}],"wait":true}`)
		assert.Equal(t, "the run has been released on this host", p.Message)
	})
	require.Eventually(t, func() bool { return len(h.queue.Asked()) == 1 }, time.Minute, time.Millisecond)
	h.Release(h.run)
	all.Wait()
}
