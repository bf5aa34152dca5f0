package taskapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/task/coordinator"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// coordinatedHost is a host whose tasks schedule closures.
type coordinatedHost struct {
	*host
	queue *queues.Server
	size  int // of the queue, in the run's spec
}

func newCoordinated(t *testing.T, functions map[string]queues.Function) *coordinatedHost {
	t.Helper()
	h := &coordinatedHost{host: newHostWith(t, 2, newTogether()), queue: queues.New(t, functions)}
	h.kill()
	return h
}

// kill ends the host without notice, and starts the next one.
func (h *coordinatedHost) kill() {
	h.t.Helper()
	require.NoError(h.t, h.Close())
	client := closurequeue.NewClient(h.queue, queues.Run)
	client.Opening = func(string) (closure.QueueInput, error) {
		return closure.QueueInput{Run: queues.Run, QueueSize: h.size}, nil
	}
	h.t.Cleanup(client.Close)
	h.schedules = func(context.Context, runkey.Task) (*closurequeue.Client, error) { return client, nil }
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

// The resources of a killed coordinator are dropped once the next process of its task
// coordinates. Those of another task, and of that process itself, are kept.
func TestResourcesOfAKilledCoordinator(t *testing.T) {
	h := newCoordinated(t, map[string]queues.Function{"same": same})
	create := func(session string, of int) {
		body := fmt.Sprintf(`{"client":%q,"number":%d,"resource":{"function":"same","args":[1]}}`, session, 1)
		status, text, _ := h.do(of, "POST", wire.PathCoordinator+wire.OpResources, body)
		require.Equal(t, 200, status, text)
	}
	schedule := func(session string, resource int) {
		asks[closure.ScheduleAnswer](h, wire.PathCoordinator+wire.OpSchedule, fmt.Sprintf(
			`{"client":%q,"batch":1,"closures":[{"function":"same","args":[{"$clusterrun.resource":%d}],"resources":[%[2]d]}]}`, session, resource))
		asks[closure.WaitAnswer](h, wire.PathCoordinator+wire.OpJoin, fmt.Sprintf(`{"client":%q,"call":1}`, session))
	}
	asks[closure.Opened](h, wire.PathCoordinator+wire.OpOpen, "")
	create("other", 1)
	create("process-0", 0)
	schedule("process-0", 2)
	for process := 1; process <= 4; process++ {
		h.listen(0, process) // the previous coordinator was killed
		session := fmt.Sprint("process-", process)
		asks[closure.Opened](h, wire.PathCoordinator+wire.OpOpen, "")
		asks[closure.Opened](h, wire.PathCoordinator+wire.OpOpen, "") // a child of it, perhaps
		assert.Equal(t, 1, h.queue.Counts().Resource)
		create(session, 0)
		schedule(session, process+2)
		require.Eventually(t, func() bool { return slices.Equal(h.queue.Built(), []uint64{uint64(process + 2)}) }, time.Minute, time.Millisecond)
		asks[closure.Opened](h, wire.PathCoordinator+wire.OpOpen, "")
		assert.Equal(t, 2, h.queue.Counts().Resource)
	}
}

func TestATaskSchedules(t *testing.T) {
	h := newCoordinated(t, map[string]queues.Function{
		"same": same, "forever": forever,
		"fails": func(context.Context, []any, map[string]any) (any, error) {
			return nil, &closure.Error{Kind: "ValueError", Message: "no", Traceback: "here"}
		},
		"tuple": func(context.Context, []any, map[string]any) (any, error) {
			return map[string]any{closure.TupleKey: []any{1, map[string]any{closure.TupleKey: []any{}}}}, nil
		},
	})
	at := asks[closure.Opened](h, wire.PathCoordinator+wire.OpOpen, "").At
	resource := asks[closure.ResourceAnswer](h, wire.PathCoordinator+wire.OpResources, `{"client":"s","number":1,"resource":{"function":"same","args":[40]}}`)
	assert.Equal(t, uint64(1), resource.ID)

	body := `{"client":"s","batch":1,"closures":[{"function":"same","args":["<"]},
		{"function":"same","args":[{"$clusterrun.resource":1}],"kwargs":{"x":[]},"resources":[1]},{"function":"same","args":[{"$clusterrun":1}]}]}`
	want := closure.ScheduleAnswer{First: 1, Room: new(spec.DefaultQueueSize - 3)}
	assert.Equal(t, want, asks[closure.ScheduleAnswer](h, wire.PathCoordinator+wire.OpSchedule, body))
	assert.Equal(t, want, asks[closure.ScheduleAnswer](h, wire.PathCoordinator+wire.OpSchedule, body), "the same request again is the same")
	assert.Equal(t, closure.ScheduleAnswer{First: 4, Room: new(spec.DefaultQueueSize - 1)}, asks[closure.ScheduleAnswer](h, wire.PathCoordinator+wire.OpSchedule,
		`{"client":"s","batch":2,"closures":[{"function":"tuple"}]}`))
	assert.Equal(t, closure.WaitAnswer{Done: true}, asks[closure.WaitAnswer](h, wire.PathCoordinator+wire.OpJoin, `{"client":"s","call":1}`))

	values := map[uint64]string{}
	for len(values) < 4 {
		o := asks[closure.Outcomes](h, wire.PathCoordinator+wire.OpOutcomes, fmt.Sprintf(`{"client":"s","after":%q,"wait":20}`, at))
		for _, one := range o.Outcomes {
			values[one.ID] = string(one.Value)
			assert.Equal(t, "worker-0", one.Task)
		}
		at = o.At
	}
	assert.Equal(t, map[uint64]string{1: `"\u003c"`, 2: `[[40],{"x":[]}]`, 3: `{"$clusterrun":1}`, 4: `[1,[]]`}, values)
	nothing := asks[closure.Outcomes](h, wire.PathCoordinator+wire.OpOutcomes, fmt.Sprintf(`{"client":"s","after":%q}`, at))
	assert.Equal(t, closure.Outcomes{At: at, Outcomes: nil}, nothing)
	found := asks[closure.Found](h, wire.PathCoordinator+wire.OpFind, `{"closures":[4],"tuples":true}`)
	assert.Equal(t, `{"$clusterrun.tuple":[1,{"$clusterrun.tuple":[]}]}`, string(found.Outcomes[0].Value))

	// Join returns the error and cancels the remaining closures.
	asks[closure.ScheduleAnswer](h, wire.PathCoordinator+wire.OpSchedule, `{"client":"s","batch":3,"closures":[{"function":"forever"},{"function":"fails"}]}`)
	waited := asks[closure.WaitAnswer](h, wire.PathCoordinator+wire.OpJoin, `{"client":"s","call":2}`)
	assert.Equal(t, &closure.Error{Kind: "ValueError", Message: "no", Traceback: "here", Closure: 6, Task: "worker-0"}, waited.Raised)
	assert.Equal(t, uint64(1), waited.Epoch)
	assert.Equal(t, waited, asks[closure.WaitAnswer](h, wire.PathCoordinator+wire.OpJoin, `{"client":"s","call":2}`))
	stale := asks[closure.ScheduleAnswer](h, wire.PathCoordinator+wire.OpSchedule, `{"client":"s","batch":4,"closures":[{"function":"same","args":[1]}]}`)
	assert.True(t, stale.Cancelled)
	kinds := map[uint64]string{}
	for len(kinds) < 3 {
		o := asks[closure.Outcomes](h, wire.PathCoordinator+wire.OpOutcomes, fmt.Sprintf(`{"client":"s","after":%q,"wait":20}`, at))
		for _, one := range o.Outcomes {
			kinds[one.ID] = string(one.Kind)
		}
		for _, c := range o.Cancelled {
			assert.Equal(t, closure.Cancelled{First: 7, Last: 7}, c)
			kinds[c.First] = "range"
		}
		at = o.At
	}
	assert.Equal(t, map[uint64]string{5: "cancelled", 6: "error", 7: "range"}, kinds)

	asks[closure.ScheduleAnswer](h, wire.PathCoordinator+wire.OpSchedule, `{"client":"s","batch":5,"epoch":1,"closures":[{"function":"forever"}]}`)
	assert.False(t, asks[closure.WaitAnswer](h, wire.PathCoordinator+wire.OpDone, `{"client":"s","call":3}`).Done)
	assert.Equal(t, 1, asks[closure.CancelAnswer](h, wire.PathCoordinator+wire.OpCancel, `{"closures":[8]}`).Told)
	assert.True(t, asks[closure.WaitAnswer](h, wire.PathCoordinator+wire.OpJoin, `{"client":"s","call":4}`).Done)

	assert.Equal(t, 0, asks[closure.ReleaseAnswer](h, wire.PathCoordinator+wire.OpRelease, `{"client":"other","resources":[1]}`).Released)
	assert.Equal(t, []uint64{1}, h.queue.Built())
	assert.Equal(t, 1, asks[closure.ReleaseAnswer](h, wire.PathCoordinator+wire.OpRelease, `{"client":"s","resources":[1,2]}`).Released)
	assert.Equal(t, 0, asks[closure.ReleaseAnswer](h, wire.PathCoordinator+wire.OpRelease, `{"client":"s","resources":[1]}`).Released, "the same request again")
	assert.Empty(t, h.queue.Built())
	gone := h.refused(409, wire.CodeQueueRefused, "POST", wire.PathCoordinator+wire.OpSchedule, `{"client":"s","batch":6,"epoch":1,"closures":[{"function":"same","resources":[1]}]}`)
	assert.Contains(t, gone.Message, "closures[0].resources: resource 1 was released by the client that created it; create a new one")

	h.queue.End("it is")
	p := h.refused(409, wire.CodeOver, "POST", wire.PathCoordinator+wire.OpSchedule, `{"client":"s","batch":6,"closures":[{"function":"same"}]}`)
	assert.Equal(t, closurequeue.ErrRunEnded.Error(), p.Message)
}

// Arguments count as many bytes as they take in the history.
func TestArgumentsAreEscapedEarly(t *testing.T) {
	large := `{"client":"s","batch":1,"closures":[{"function":"f","args":["` + strings.Repeat("<", 50_000) + `"]}]}`
	h := newCoordinated(t, nil)
	p := h.refused(400, wire.CodeInvalid, "POST", wire.PathCoordinator+wire.OpSchedule, large)
	assert.Equal(t, "closures[0].args", p.Field)
	assert.Contains(t, p.Message, "the arguments have 300004 bytes; at most 262144 are allowed")
}

func TestBadCoordinatorsAreRefused(t *testing.T) {
	h := newHost(t, 1)
	p := h.refused(501, wire.CodeNotThere, "POST", wire.PathCoordinator+wire.OpOpen, "")
	assert.Equal(t, "this host worker has no closures that its tasks could schedule", p.Message)
	c := newCoordinated(t, map[string]queues.Function{"f": same})
	asks[closure.Opened](c, wire.PathCoordinator+wire.OpOpen, "")
	many := "[" + strings.Repeat("1,", closure.MaxListed) + "1]"
	for _, bad := range []struct{ path, body, code, field, message string }{
		{wire.PathCoordinator + wire.OpSchedule, `{"client":"s","batch":1,"closures":[{"function":""},{"function":""}]}`, wire.CodeInvalid, "closures[0].function", "missing; name a function that the tasks have registered (and 1 more problems)"},
		{wire.PathCoordinator + wire.OpSchedule, `{"client":"s","batch":1,"closures":[{"function":"g"}]}`, wire.CodeQueueRefused, "closures[0].function", `no task has registered a function "g"`},
		{wire.PathCoordinator + wire.OpSchedule, `{"client":"s","batch":1,"closures":[{"function":"f","resources":[7]}]}`, wire.CodeQueueRefused, "closures[0].resources", `no resource 7`},
		{wire.PathCoordinator + wire.OpResources, `{"client":"s","number":1,"resource":{"function":"g"}}`, wire.CodeQueueRefused, "resource.function", `no task has registered a function "g"`},
		{wire.PathCoordinator + wire.OpRelease, `{"client":"s"}`, wire.CodeInvalid, "resources", "is empty; give the IDs of resources that the client has created"},
		{wire.PathCoordinator + wire.OpRelease, `{"task":"worker-1","process":9}`, wire.CodeInvalid, "task", "leave it out; it is for hosts"},
		{wire.PathCoordinator + wire.OpRelease, `{"resources":[1]}`, wire.CodeInvalid, "client", "missing; give the name of the client"},
		{wire.PathCoordinator + wire.OpRelease, `{"client":"s","resources":` + many + `}`, wire.CodeInvalid, "resources", "has 4097; a request may have at most 1000; send several requests"},
		{wire.PathCoordinator + wire.OpCancel, `{"closures":` + many + `}`, wire.CodeInvalid, "closures", "has 4097 elements; give at most 4096"},
		{wire.PathCoordinator + wire.OpOutcomes, `{"client":"s"}`, wire.CodeInvalid, "after", "is missing; give the at of the previous answer, or of the answer to open"},
		{wire.PathCoordinator + wire.OpOutcomes, `{"client":"s","after":"x:1","wait":21}`, wire.CodeInvalid, "wait", "is 21; give 0 to 20 seconds"},
		{wire.PathCoordinator + wire.OpOutcomes, `{"client":"s","after":"x"}`, wire.CodeQueueRefused, "", `"x" is not a position in the history of a queue`},
		{wire.PathCoordinator + wire.OpFind, `{}`, wire.CodeInvalid, "closures", "is empty; give the IDs of closures"},
		{wire.PathCoordinator + wire.OpFind, `{"closures":[7]}`, wire.CodeQueueRefused, "", "no closure 7; only 0 were scheduled"},
	} {
		status := 400
		if bad.code == wire.CodeQueueRefused {
			status = 409
		}
		p := c.refused(status, bad.code, "POST", bad.path, bad.body)
		assert.Equal(t, bad.field, p.Field, bad.body)
		assert.Contains(t, p.Message, bad.message, bad.body)
	}
}

// Waiting coordinators get an answer when the run is released here.
func TestWaitingCoordinatorsAreReleased(t *testing.T) {
	h := newCoordinated(t, map[string]queues.Function{"forever": forever})
	at := asks[closure.Opened](h, wire.PathCoordinator+wire.OpOpen, "").At
	asks[closure.ScheduleAnswer](h, wire.PathCoordinator+wire.OpSchedule, `{"client":"s","batch":1,"closures":[{"function":"forever"}]}`)
	var all sync.WaitGroup
	for path, body := range map[string]string{
		wire.PathCoordinator + wire.OpJoin:     `{"client":"s","call":1}`,
		wire.PathCoordinator + wire.OpOutcomes: fmt.Sprintf(`{"client":"s","after":%q,"wait":20}`, at),
	} {
		all.Go(func() {
			p := h.refused(409, wire.CodeOver, "POST", path, body)
			assert.Equal(t, "the run is released on this host", p.Message)
		})
	}
	require.Eventually(t, func() bool { return h.queue.Updates(closure.UpdateJoin) == 1 }, time.Minute, time.Millisecond)
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
