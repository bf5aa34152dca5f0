package taskapi

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// coordinatedHost is a host with coordinating tasks.
type coordinatedHost struct {
	*host
	queue *testQueue
}

func newCoordinated(t *testing.T, functions map[string]function) *coordinatedHost {
	t.Helper()
	h := &coordinatedHost{host: newHostWith(t, 2, newTogether()), queue: newTestQueue(t, functions)}
	h.kill()
	return h
}

// kill stops the host without notice, and starts the next one.
func (h *coordinatedHost) kill() {
	h.t.Helper()
	require.NoError(h.t, h.Close())
	h.schedules = func(context.Context, runkey.Task) (Queue, error) { return h.queue, nil }
	h.start()
}

// asks sends a task's request, and reads the answer.
func asks[A any](h *coordinatedHost, path, body string) (out A) {
	h.t.Helper()
	status, text, _ := h.do(0, "POST", path, body)
	require.Equal(h.t, 200, status, text)
	require.NoError(h.t, json.Unmarshal([]byte(text), &out))
	return out
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
	p := h.refused(501, wire.CodeNotThere, "POST", wire.PathCoordinator+wire.OpOpen, "")
	assert.Equal(t, "this host worker has no closures that its tasks could schedule", p.Message)
	c := newCoordinated(t, nil)
	p = c.refused(400, wire.CodeInvalid, "POST", wire.PathCoordinator+wire.OpSchedule, `{"client":"s","batch":1,"closures":[{"function":""},{"function":""}]}`)
	assert.Equal(t, "closures[0].function", p.Field)
	assert.Contains(t, p.Message, "missing; name a function that the tasks have registered (and 1 more problems)")
}

// Waiting coordinators get an answer when this host releases the run.
func TestWaitingCoordinatorsAreReleased(t *testing.T) {
	h := newCoordinated(t, map[string]function{"forever": forever})
	asks[closure.Opened](h, wire.PathCoordinator+wire.OpOpen, "")
	asks[closure.ScheduleAnswer](h, wire.PathCoordinator+wire.OpSchedule, `{"client":"s","batch":1,"closures":[{"function":"forever"}]}`)
	var all sync.WaitGroup
	for path, body := range map[string]string{
		wire.PathCoordinator + wire.OpJoin: `{"client":"s","call":1}`,
		wire.PathCoordinator + wire.OpTake: `{"client":"s","after":0}`,
	} {
		all.Go(func() {
			p := h.refused(409, wire.CodeOver, "POST", path, body)
			assert.Equal(t, "the run is released on this host", p.Message)
		})
	}
	require.Eventually(t, func() bool { return h.queue.requests(wire.OpJoin) == 1 }, time.Minute, time.Millisecond)
	h.Release(h.run)
	all.Wait()
}
