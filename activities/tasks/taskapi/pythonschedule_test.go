package taskapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/memoryqueue"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// gate blocks a function's calls until it is opened.
type gate chan struct{}

func (g gate) wait(ctx context.Context, args []any, _ map[string]any) (any, error) {
	select {
	case <-g:
		return args, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// counter adds up its arguments.
type counter struct{ sum atomic.Int64 }

func (c *counter) add(_ context.Context, args []any, _ map[string]any) (any, error) {
	return c.sum.Add(int64(args[0].(float64))), nil
}

func fails(_ context.Context, args []any, _ map[string]any) (any, error) {
	return nil, &closure.Error{Kind: args[0].(string), Message: args[1].(string), Traceback: "Traceback: in fails\n", Task: "worker-0"}
}

// coordinates is the start of these tests' programs.
const coordinates = `
import clusterrun, os, signal, sys, threading, time
c = clusterrun.ClusterCoordinator()
def raised(call, *kinds):
    try:
        call()
    except BaseException as e:
        assert isinstance(e, kinds or Exception), repr(e)
        return str(e)
    raise AssertionError("nothing was raised")
CANCELLED = "The corresponding function is cancelled. Please reschedule the function."
ABORTED = "The corresponding function is aborted. Please reschedule the function."
`

func (p *python) coordinates(h *coordinatedHost, source string) string {
	p.t.Helper()
	return p.run(h.host, 0, coordinates+source)
}

// CC-14, CC-15, CC-16, CC-18, CC-24, CC-25, CC-97, SEED-43
func TestPythonCoordinates(t *testing.T) {
	var sum counter
	p, h := newPython(t), newCoordinated(t, 0, map[string]memoryqueue.Function{"same": same, "add": sum.add, "nested": func(context.Context, []any, map[string]any) (any, error) {
		return map[string]any{closure.TupleKey: []any{1, []any{2, map[string]any{closure.TupleKey: []any{}}}, map[string]any{"x": map[string]any{closure.TupleKey: []any{3.5}}}}}, nil
	}})
	out := p.coordinates(h, pythonFile(t, "coordinates"))
	assert.Equal(t, strings.TrimSpace(`
the arguments of add: a RemoteValue is not supported as an argument of a scheduled function; fetch it first
the arguments of add: a RemoteValue is not supported as an argument of a scheduled function; fetch it first
the arguments of add: a RemoteValue is not supported as an argument of a scheduled function; fetch it first
only registered functions are accepted: decorate
only registered functions are accepted: decorate 7 with @clusterrun.function
args is 7; use a tuple of arguments, such as (7,)
kwargs is [1]; use a dict of arguments by name
the arguments of add: <class 'object'> is not JSON
the arguments of add: {1} is not JSON
the arguments of add have 262156 bytes of JSON; the limit is 262144: put large data into files
[('closure_execution', 15), ('remote_value_fetch', 15)]`)+"\n", out)
	assert.Equal(t, int64(20), sum.sum.Load())
}

// CC-32 to CC-36, CC-39, CC-40, SEED-36, SEED-37, SEED-38: the first error is raised once, by join,
// schedule or done, and closures that were not called are cancelled.
func TestPythonErrorsOfClosures(t *testing.T) {
	var sum counter
	p, h := newPython(t), newCoordinated(t, 0, map[string]memoryqueue.Function{"add": sum.add, "fails": fails, "forever": forever})
	p.coordinates(h, pythonFile(t, "errors_of_closures"))
}

// CC-37, CC-38, CC-26, CC-22, SEED-57
func TestPythonPerWorkerResources(t *testing.T) {
	var sum counter
	p, h := newPython(t), newCoordinated(t, 0, map[string]memoryqueue.Function{
		"same": same, "load": same, "add": sum.add,
		"broken": func(context.Context, []any, map[string]any) (any, error) { return nil, errors.New("disk is gone") },
	})
	out := p.coordinates(h, pythonFile(t, "per_worker_resources"))
	assert.Equal(t, strings.TrimSpace(`
Input has an error, the original exception is disk is gone, error message is disk is gone.
Input has an error, the original exception is disk is gone, error message is disk is gone.
only registered functions are accepted: decorate
only registered functions are accepted: decorate
Iterating over an `+"`AsyncDistributedIterator`"+` is not supported right now.`)+"\n", out)
	assert.Equal(t, 3, h.queue.Called("load"), "each is built once")
}

// No closure is lost or scheduled twice if the host worker is killed, and every value reaches the
// waiting callers.
func TestPythonCoordinatesAcrossHosts(t *testing.T) {
	var sum counter
	p, h := newPython(t), newCoordinated(t, 0, map[string]memoryqueue.Function{"same": same, "add": sum.add})
	program := p.background(h.host, 0, coordinates+pythonFile(t, "coordinates_across_hosts"))
	for range 10 {
		program.says("ready")
		program.goOn()
		h.kill()
	}
	assert.Equal(t, "{'closure_execution': 10000, 'remote_value_fetch': 10000}\n", program.ends())
	assert.Equal(t, uint64(10_000), h.queue.Counts().Scheduled)
	assert.Equal(t, int64(5000), sum.sum.Load())
	assert.Less(t, len(h.queue.Asked()), 4000, "they go together")
}

// Schedule waits while the queue is full, and all closures are called. Closures that the process
// has not sent count towards the limit.
func TestPythonScheduleWaitsInAFullQueue_CC30_CC41_SEED34(t *testing.T) {
	g := make(gate)
	p, h := newPython(t), newCoordinated(t, 2, map[string]memoryqueue.Function{"wait": g.wait, "same": same, "fails": fails})
	program := p.background(h.host, 0, coordinates+pythonFile(t, "schedule_waits_in_a_full_queue"))
	require.Eventually(t, func() bool { return h.queue.Counts().Queued == 2 }, time.Minute, time.Millisecond)
	program.goOn()
	program.says("full")
	close(g)
	assert.Equal(t, "done\n", program.ends())
}

// SEED-35: while a join waits, schedule waits in other threads.
func TestPythonScheduleWaitsForAJoin_SEED35(t *testing.T) {
	g := make(gate)
	p, h := newPython(t), newCoordinated(t, 0, map[string]memoryqueue.Function{"wait": g.wait, "same": same})
	program := p.background(h.host, 0, coordinates+pythonFile(t, "schedule_waits_for_a_join"))
	program.says("waits")
	assert.Zero(t, h.queue.Called("same"))
	close(g)
	assert.Equal(t, "['joined', 'scheduled']\n", program.ends())
}

// CC-60, CC-88: an unreferenced coordinator leaves nothing behind, and another coordinator
// continues. So do a forked child and an exiting program.
func TestPythonCoordinatorsEnd_CC60(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, 0, map[string]memoryqueue.Function{"same": same, "forever": forever})
	p.coordinates(h, pythonFile(t, "coordinators_end"))
	require.Eventually(t, func() bool { return h.queue.Called("same") == 1+100+1+1+1+10 }, time.Minute, time.Millisecond, "%d", h.queue.Called("same"))
	assert.Equal(t, "ok\n", p.output(coordinates[:strings.Index(coordinates, "c = ")]+`
try:
    clusterrun.ClusterCoordinator()
except ValueError as e:
    assert str(e).startswith("a ClusterCoordinator is for tasks: CLUSTERRUN_SOCKET is not set")
    print("ok")
`))
}

// The end of the run stops everything.
func TestPythonTheRunOfACoordinatorEnds(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, 0, map[string]memoryqueue.Function{"same": same, "forever": forever})
	program := p.background(h.host, 0, coordinates+pythonFile(t, "the_run_of_a_coordinator_ends"))
	program.says("waits")
	h.queue.End("it is")
	assert.Equal(t, strings.Repeat("the run has ended; closures can no longer be scheduled\n", 3), program.ends())
}

// A join interrupted by Ctrl-C leaves the error to the next join.
func TestPythonJoinIsInterrupted(t *testing.T) {
	g := make(gate)
	p, h := newPython(t), newCoordinated(t, 0, map[string]memoryqueue.Function{"fails": func(ctx context.Context, args []any, kwargs map[string]any) (any, error) {
		if _, err := g.wait(ctx, args, kwargs); err != nil {
			return nil, err
		}
		return fails(ctx, args, kwargs)
	}})
	program := p.background(h.host, 0, coordinates+pythonFile(t, "join_is_interrupted"))
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(h.queue.Asked(), func(r closure.SyncRequest) bool { return r.Join })
	}, time.Minute, time.Millisecond)
	require.NoError(t, program.cmd.Process.Signal(syscall.SIGINT))
	program.says("interrupted")
	close(g)
	program.goOn()
	assert.Equal(t, "no\n", program.ends())
}

// CC-98: the watchdog fires when no closure completes, but not if none is pending or after it was
// stopped.
func TestPythonWatchDog_CC98(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, 0, map[string]memoryqueue.Function{"same": same, "forever": forever})
	out := p.coordinates(h, pythonFile(t, "watch_dog"))
	assert.Equal(t, "ok\n", out)
}

// Many threads schedule, fetch and send requests concurrently.
func TestPythonManyThreadsCoordinate(t *testing.T) {
	var sum counter
	p, h := newPython(t), newCoordinated(t, 0, map[string]memoryqueue.Function{"add": sum.add, "same": same})
	p.coordinates(h, pythonFile(t, "many_threads_coordinate"))
	assert.Equal(t, int64(400), sum.sum.Load())
	assert.Equal(t, uint64(800), h.queue.Counts().Scheduled)
}

// Errors keep their types if Python has them.
func TestPythonTypesOfErrors(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, 0, map[string]memoryqueue.Function{"fails": fails})
	out := p.coordinates(h, pythonFile(t, "types_of_errors"))
	assert.Equal(t, strings.TrimSpace(`
[]
ClosureError ['Exception'] KeyboardInterrupt: text
ClosureError ['Exception'] print: text
ClosureError ['Exception'] MyError: text
ClosureError ['Exception'] text
UnavailableError ['ClosureError', 'UnavailableError'] text`)+"\n", out)
}

// goOn sends the line that a program waits for.
func (p *program) goOn() {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in)
	require.NoError(p.t, err)
}

// When a run's tasks must stop, queued closures may never be called. Waiting for them stops, so
// that the waiting threads do not become stragglers.
func TestPythonWaitsEndWhenTheTasksStop(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, 2, map[string]memoryqueue.Function{"forever": forever, "same": same})
	program := p.background(h.host, 0, coordinates+pythonFile(t, "waits_end_when_the_tasks_stop"))
	require.Eventually(t, func() bool {
		asked := h.queue.Asked()
		return h.queue.Counts().Scheduled == 1+9 && asked[len(asked)-1].Join
	}, time.Minute, time.Millisecond)
	program.goOn()
	h.stop(1, "POST", "", `{"error": {"kind": "IOError", "message": "no data"}}`)
	const why = "worker-1 stopped the run: IOError: no data"
	assert.Equal(t, "fetch: "+why+"\njoin: "+why+"\nschedule: "+why+"\n"+why+"\n"+why+" False 1\n", program.ends())
}
