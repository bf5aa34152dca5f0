package taskapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/task/coordinator"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

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
	s, err := c.Stopping(testContext(t))
	require.NoError(t, err)
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
