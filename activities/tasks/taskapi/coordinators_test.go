package taskapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/task/coordinator"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// coordinatedHost is a host whose tasks schedule closures.
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

// kill ends the host without notice, and starts the next one.
func (h *coordinatedHost) kill() {
	h.t.Helper()
	require.NoError(h.t, h.Close())
	h.schedules = func(context.Context, runkey.Task) (Queue, error) { return h.queue, nil }
	h.start()
}

// asks sends a request of a task, and reads the answer.
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

// Waiting coordinators get an answer when the run is released here.
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

// tied returns a coordinator in a process of the task.
func tied(t *testing.T, c *task.Task, options ...coordinator.Option) *coordinator.Coordinator {
	t.Helper()
	coord := coordinator.New(append(options, coordinator.Logger(slog.New(slog.DiscardHandler)))...)
	t.Cleanup(c.Tie(coord))
	return coord
}

func untilStopped(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

// CO-08: goroutines run in two processes, and one of them fails. Both joins return the first
// error.
func TestCoordinatorsOfTwoProcesses_CO08(t *testing.T) {
	h, r := newStopping(t, 2)
	fails, other := tied(t, h.task(0)), tied(t, h.task(1))
	for _, c := range []*coordinator.Coordinator{fails, other} {
		c.Go("waits", untilStopped)
	}
	first := errors.New("First")
	fails.Go("fails", func(context.Context) error { return first })
	assert.Equal(t, first, fails.Join(), "its own error")
	var elsewhere *task.StopError
	err := other.Join()
	require.ErrorAs(t, err, &elsewhere)
	assert.Equal(t, "worker-0 stopped the run: First", err.Error())
	assert.Equal(t, "worker-0", elsewhere.By)
	assert.Contains(t, elsewhere.Stopping.Error.Traceback, "coordinator.(*Coordinator)")
	assert.Equal(t, "First", r.wish(t).Error.Message, "what came from the run does not go back")
}

// SEED-62: a stop that is clean for one coordinator is clean for all.
func TestCleanStopsOfProcesses_SEED62(t *testing.T) {
	h, r := newStopping(t, 2)
	asks, other := h.task(0), tied(t, h.task(1))
	coord := tied(t, asks)
	require.NoError(t, coord.RequestStop(io.EOF))
	require.NoError(t, coord.Join())
	assert.True(t, other.WaitForStop(testContext(t)))
	require.NoError(t, other.Join())
	wish := r.wish(t)
	assert.Nil(t, wish.Error)
	assert.Equal(t, "EOF", wish.Reason)

	coord.ClearStop()
	require.Eventually(t, func() bool { return !other.ShouldStop() }, time.Minute, time.Millisecond)
	_, err := asks.Stop(testContext(t), task.Stop{Error: &task.Report{Kind: "StopIteration"}})
	require.NoError(t, err)
	for _, c := range []*coordinator.Coordinator{coord, other} {
		assert.True(t, c.WaitForStop(testContext(t)))
		require.NoError(t, c.Join(), "clean by the rules of the run")
	}
}

// A stop by an operator, and its clear, reach the coordinator.
func TestTheRunStopsACoordinator(t *testing.T) {
	h, r := newStopping(t, 1)
	coord := tied(t, h.task(0))
	for seq := 1; seq < 6; seq += 2 {
		h.SetStopping(h.run, spec.Stopping{Seq: seq, Stop: true})
		assert.True(t, coord.WaitForStop(testContext(t)))
		require.NoError(t, coord.Join())
		h.SetStopping(h.run, spec.Stopping{Seq: seq + 1})
		require.Eventually(t, func() bool { return !coord.ShouldStop() && !coord.Joined() }, time.Minute, time.Millisecond)
	}
	h.SetStopping(h.run, spec.Stopping{Seq: 7, Stop: true, Error: &spec.TogetherError{Kind: "IOError", Message: "x"}})
	assert.True(t, coord.WaitForStop(testContext(t)))
	require.ErrorContains(t, coord.Join(), "an operator stopped the run: IOError: x")
	assert.Empty(t, r.heard())
}

// If the run clears an old stop while a new one is on its way, the new one stands.
func TestAStopAndAClearMeet(t *testing.T) {
	h, r := newStopping(t, 1)
	c := h.task(0)
	coord := tied(t, c)
	require.NoError(t, coord.RequestStop(nil))
	coord.ClearStop()
	assert.False(t, coord.ShouldStop())
	release := r.hold()
	first := errors.New("First")
	told := make(chan error, 1)
	go func() { told <- coord.RequestStop(first) }()
	<-r.asked
	r.is(spec.Stopping{Seq: 4})
	h.SetStopping(h.run, spec.Stopping{Seq: 3, Stop: true})
	h.SetStopping(h.run, spec.Stopping{Seq: 4})
	s := must.Get(c.Stopping(testContext(t)))(t)
	assert.Equal(t, 4, s.Seq)
	assert.True(t, coord.ShouldStop())
	release()
	require.NoError(t, <-told)
	assert.True(t, coord.ShouldStop())
	require.Equal(t, first, coord.Join())
}

// A panic is reported with its own stack, and is never a clean stop.
func TestAPanicStopsTheRun(t *testing.T) {
	h, r := newStopping(t, 1)
	coord := tied(t, h.task(0))
	coord.Go("panics", func(context.Context) error { panics(); return nil })
	var p *coordinator.PanicError
	require.ErrorAs(t, coord.Join(), &p)
	wish := r.wish(t)
	assert.Equal(t, "panic", wish.Error.Kind)
	assert.Equal(t, "EOF", wish.Error.Message)
	assert.Contains(t, wish.Error.Traceback, "taskapi.panics(")
}

func panics() { panic(io.EOF) }

// If the run refuses a stop, join fails.
func TestTheRunRefusesACoordinator(t *testing.T) {
	h, r := newStopping(t, 1)
	r.refuses("run iris has ended")
	coord := tied(t, h.task(0))
	require.NoError(t, coord.RequestStop(nil))
	require.ErrorContains(t, coord.Join(), "the run could not be asked to stop: run iris has ended")
}

// Many coordinators stop, clear and join side by side, and in the end all agree.
func TestManyTiedCoordinators(t *testing.T) {
	h, _ := newStopping(t, 4)
	var all sync.WaitGroup
	var coords []*coordinator.Coordinator
	for i := range 4 {
		coord := tied(t, h.task(i))
		coords = append(coords, coord)
		all.Go(func() {
			for range 20 {
				coord.Go("waits", untilStopped)
				assert.NoError(t, coord.RequestStop(nil))
				assert.NoError(t, coord.Join())
				coord.ClearStop()
			}
		})
	}
	all.Wait()
	require.NoError(t, coords[0].RequestStop(nil))
	for _, c := range coords {
		require.Eventually(t, c.ShouldStop, time.Minute, time.Millisecond)
	}
	coords[0].ClearStop()
	for _, c := range coords {
		require.Eventually(t, func() bool { return !c.ShouldStop() }, time.Minute, time.Millisecond)
	}
}

func TestUntie(t *testing.T) {
	h, r := newStopping(t, 1)
	c := h.task(0)
	coord := coordinator.New()
	untie := c.Tie(coord)
	awaitGoroutines(t, "task.(*tie).follow(", 1)
	untie()
	awaitGoroutines(t, "task.(*tie).follow(", 0)
	require.NoError(t, coord.RequestStop(nil))
	assert.Empty(t, r.heard())
	assert.False(t, c.ShouldStop())
}
