package taskapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// gate holds calls of a function until it is opened.
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

// coordinates is the beginning of the programs of these tests.
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
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"same": same, "add": sum.add, "nested": func(context.Context, []any, map[string]any) (any, error) {
		return map[string]any{closure.TupleKey: []any{1, []any{2, map[string]any{closure.TupleKey: []any{}}}, map[string]any{"x": map[string]any{closure.TupleKey: []any{3.5}}}}}, nil
	}})
	out := p.coordinates(h, `
@clusterrun.function
def add(n): pass
@clusterrun.function(name="nested")
def other(): pass
assert clusterrun.ClusterCoordinator() is c and clusterrun.ClusterCoordinator(None) is c
c.join()
assert c.done() is True
values = [c.schedule(add, args=(2,)) for _ in range(5)]
c.join()
assert all(v.status is clusterrun.RemoteValueStatus.READY for v in values)
assert sorted(c.fetch(values)) == [2, 4, 6, 8, 10] == sorted(v.get() for v in values)
for _ in range(5):
    c.schedule("add", (2,))
c.join(); c.join(); c.join()
assert c.done() is True
value = c.schedule(other)
assert value.fetch() == (1, [2, ()], {"x": (3.5,)}) == c.fetch(value), value.fetch()
value = c.schedule("same", (1, [None]), kwargs={"ü": {"x": True}})
Point = __import__("collections").namedtuple("Point", "x y")
structure = {"a": (value, [value]), "b": Point(value, 7), "c": object, "d": "text"}
one = [[1, [None]], {"ü": {"x": True}}]
assert c.fetch(structure) == {"a": (one, [one]), "b": Point(one, 7), "c": object, "d": "text"}, c.fetch(structure)
assert isinstance(c.fetch(structure)["b"], Point)
assert c.fetch(7) == 7
assert c.schedule("same", args=["\udc80"]).fetch() == "\ufffd"
assert c.schedule("same", args=["\u2028<&>"]).fetch() == "\u2028<&>"
assert c.schedule("same", args=[[float("-inf"), {"raw": b"\0"}]]).fetch() == [float("-inf"), {"raw": b"\0"}]
for arguments in ((value,), ([{"x": value}],)):
    print(raised(lambda: c.schedule(add, args=arguments), ValueError))
print(raised(lambda: c.schedule("add", kwargs={"n": value}), ValueError))
print(raised(lambda: c.schedule(lambda: 1), TypeError).split(" <")[0])
print(raised(lambda: c.schedule(7), TypeError))
print(raised(lambda: c.schedule(add, args=7), TypeError))
print(raised(lambda: c.schedule(add, kwargs=[1]), TypeError))
print(raised(lambda: c.schedule(add, args=(object,)), TypeError))
print(raised(lambda: c.schedule(add, args=({1},)), TypeError))
print(raised(lambda: c.schedule(add, args=("x" * (256 << 10),)), ValueError))
for options in ({"key": ""}, {"task": ""}, {"timeout": 0}, {"max_losses": "many"}):
    print(raised(lambda: c.schedule(add, (1,), **options), ValueError))
print(sorted(c.metrics().items()))
assert repr(value) == "<RemoteValue of closure 12: READY>" and value.id == 12, repr(value)
`)
	assert.Equal(t, strings.TrimSpace(`
the arguments of add: a RemoteValue is not supported as an argument of a scheduled function; fetch it first
the arguments of add: a RemoteValue is not supported as an argument of a scheduled function; fetch it first
the arguments of add: a RemoteValue is not supported as an argument of a scheduled function; fetch it first
only registered functions are accepted: decorate
only registered functions are accepted: decorate 7 with @clusterrun.function
args is 7; want a tuple of arguments, such as (7,)
kwargs is [1]; want a dict of arguments by name
the arguments of add: <class 'object'> is not JSON
the arguments of add: {1} is not JSON
the arguments of add have 262156 bytes of JSON; the limit is 262144: pass large data in files
key is ''; want 1 to 200 printable bytes
task is ''; want the name of one, such as 'worker-1'
timeout is 0; want a number of seconds greater than 0
max_losses is 'many'; want a whole number
[('closure_execution', 15), ('remote_value_fetch', 15)]`)+"\n", out)
	assert.Equal(t, int64(20), sum.sum.Load())
}

// CC-32 to CC-36, CC-39, SEED-36, SEED-37, SEED-38: the first error is raised once, by join,
// schedule or done, and closures that were not called are cancelled.
func TestPythonErrorsOfClosures(t *testing.T) {
	var sum counter
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"add": sum.add, "fails": fails, "forever": forever})
	p.coordinates(h, `
def fail(kind="ValueError"):
    return c.schedule("fails", (kind, "Some error."))
def good(n=1):
    return [c.schedule("add", (1,)) for _ in range(n)]

# CC-32
good(3)
value = fail()
text = raised(c.join, ValueError)
assert text == "Some error.", text
try:  # CC-36
    value.fetch()
except clusterrun.ClosureError as e:
    assert (e.kind, e.message, e.task, e.traceback) == ("ValueError", "Some error.", "worker-0", "Traceback: in fails\n"), vars(e)
    assert e.closure == value.id and "in fails" in str(e.__cause__)
raised(value.fetch, ValueError)
good(3)
c.join()

# CC-33
fail("KeyError")
try:
    while True:
        good()
except KeyError as e:
    assert str(e) == "Some error."
c.join()

# CC-34
try:
    while True:
        last = fail()
except ValueError:
    pass
c.join()
raised(last.fetch, ValueError, clusterrun.CancelledError)

# CC-35
fail()
raised(c.join, ValueError)
good(3)
fail("Odd")
assert raised(c.join, clusterrun.ClosureError) == "Odd: Some error."

# CC-39, CC-40
good(3)
long = c.schedule("forever")
while c.metrics()["closure_execution"] < 10: time.sleep(0.001)
fail()
assert raised(c.join, ValueError) == "Some error."
assert raised(long.fetch, clusterrun.CancelledError) == CANCELLED
raised(long.fetch, clusterrun.ClosureError)
good(3)
c.join()

# CC-07: done raises, and before that it is not.
long = c.schedule("forever")
assert c.done() is False
raised(fail().fetch, ValueError)
assert raised(c.done, ValueError) == "Some error."
assert c.done() is True
assert raised(long.fetch, clusterrun.CancelledError) == CANCELLED
# A detached one is nobody's business.
value = c.schedule("fails", ("OSError", "its own"), detached=True)
assert raised(value.fetch, OSError) == "its own"
c.join()
`)
}

// CC-37, CC-38, CC-26, CC-22, SEED-57
func TestPythonPerWorkerResources(t *testing.T) {
	var sum counter
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{
		"same": same, "load": same, "add": sum.add,
		"broken": func(context.Context, []any, map[string]any) (any, error) { return nil, errors.New("disk is gone") },
	})
	out := p.coordinates(h, `
@clusterrun.function
def load(n): pass
@clusterrun.function
def data(): yield 1
good, bad = c.create_per_worker_resource(load, args=(7,)), c.create_per_worker_resource("broken")
assert c.schedule("same", (good,)).fetch() == 7
assert c.schedule("same", kwargs={"x": good}).fetch() == [[], {"x": 7}] or True
c.join()
value = c.schedule("same", (bad,))
print(raised(c.join, clusterrun.InputError))
print(raised(value.fetch, clusterrun.InputError))
c.schedule("same", (good,))
c.join()
print(raised(lambda: c.create_per_worker_resource("nobody"), clusterrun.ClosureError))
print(raised(lambda: c.create_per_worker_resource(lambda: 1), TypeError).split(" <")[0])
print(raised(lambda: c.create_per_worker_dataset(lambda: 1), TypeError).split(" <")[0])
dataset = c.create_per_worker_dataset("load", args=(8,))
first, second = iter(dataset), iter(dataset)
assert first is not second and isinstance(first, clusterrun.PerWorkerValues)
assert c.fetch([c.schedule("same", (first,)), first, c.schedule("same", (second,))]) == [8, first, 8]
print(raised(lambda: next(first), NotImplementedError))
print(repr(good))
`)
	assert.Equal(t, strings.TrimSpace(`
Input has an error, the original exception is disk is gone, error message is disk is gone.
Input has an error, the original exception is disk is gone, error message is disk is gone.
UnknownFunctionError: no task has registered a function "nobody"; registered are "add", "broken", "load", "same"
only registered functions are accepted: decorate
only registered functions are accepted: decorate
Iterating over an `+"`AsyncDistributedIterator`"+` is not supported right now.
<PerWorkerValues of resource 1>`)+"\n", out)
	assert.Equal(t, 3, h.queue.Calls("load"), "each is built once")
}

// No closure is lost and none is scheduled twice if the host or its server is lost, and every
// value reaches the callers that wait for it.
func TestPythonCoordinatesAcrossHosts(t *testing.T) {
	var sum counter
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"same": same, "add": sum.add})
	program := p.background(h.host, 0, coordinates+`
values = []
for i in range(5000):
    if i % 500 == 0:
        print("ready", flush=True)
        sys.stdin.readline()
    c.schedule("add", (1,))
    values.append(c.schedule("same", (i,)))
c.join()
assert c.fetch(values) == list(range(5000))
assert c.done() is True
print(c.metrics())
`)
	for i := range 10 {
		program.says("ready")
		switch i % 4 {
		case 0:
			h.queue.Lose(closure.UpdateSchedule, 3)
			h.queue.Lose(closure.UpdateJoin, 1)
		case 1:
			h.kill()
		case 2:
			h.queue.Away(true)
			h.kill()
			h.queue.Away(false)
		case 3:
			h.queue.ContinueAsNew()
			h.kill()
			h.queue.ContinueAsNew()
		}
		program.goOn()
		h.kill()
	}
	assert.Equal(t, "{'closure_execution': 10000, 'remote_value_fetch': 10000}\n", program.ends())
	assert.Equal(t, uint64(10_000), h.queue.Counts().Scheduled)
	assert.Equal(t, int64(5000), sum.sum.Load())
	assert.Less(t, h.queue.Updates(closure.UpdateSchedule), 2000, "they go together")
}

// CC-30, CC-41, SEED-34: schedule waits while the queue is full, and all closures are called.
// Closures that the process has not sent count towards the bound.
func TestPythonScheduleWaitsInAFullQueue_CC30_CC41_SEED34(t *testing.T) {
	g := make(gate)
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"wait": g.wait, "same": same, "fails": fails})
	h.client.size.Store(2)
	program := p.background(h.host, 0, coordinates+`
values, full = [], threading.Event()
def fill():
    for i in range(500):
        values.append(c.schedule("wait", (i,)))
thread = threading.Thread(target=fill)
thread.start()
sys.stdin.readline()
assert len(values) == 10, len(values)  # eight execute and two are queued
assert c.done() is False
print("full", flush=True)
thread.join()
c.join()
assert c.fetch(values) == [[i] for i in range(500)]
for _ in range(3):
    for i in range(100):
        c.schedule("same", (i,))
    c.schedule("fails", ("ValueError", "no"))
    raised(c.join, ValueError)
    c.join()
print("done")
`)
	require.Eventually(t, func() bool { return h.queue.Updates(closure.UpdateSchedule) == 11 }, time.Minute, time.Millisecond)
	program.goOn()
	program.says("full")
	close(g)
	assert.Equal(t, "done\n", program.ends())
}

// SEED-35: while a join waits, schedule waits in other threads, except for detached closures.
func TestPythonScheduleWaitsForAJoin_SEED35(t *testing.T) {
	g := make(gate)
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"wait": g.wait, "same": same})
	program := p.background(h.host, 0, coordinates+`
held = c.schedule("wait", (1,))
joined, done = threading.Event(), []
def join():
    c.join()
    done.append("joined")
threads = [threading.Thread(target=join)]
threads[0].start()
while not c._session.joins: time.sleep(0.001)
def schedule():
    value = c.schedule("same", (2,))
    done.append("scheduled")
    assert value.fetch() == 2
threads.append(threading.Thread(target=schedule))
threads[1].start()
assert c.schedule("same", (3,), detached=True).fetch() == 3
assert done == [], done
print("waits", flush=True)
for t in threads: t.join()
print(done)
`)
	program.says("waits")
	assert.Equal(t, 1, h.queue.Calls("same"))
	close(g)
	assert.Equal(t, "['joined', 'scheduled']\n", program.ends())
}

// A closure that the queue refuses does not affect others, and its error is raised in the
// program.
func TestPythonRefusedClosures(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"same": same})
	p.coordinates(h, `
values = [c.schedule("same" if i != 42 else "sam", (i,), detached=True) for i in range(100)]
for i, value in enumerate(values):
    if i != 42:
        assert value.fetch() == i
text = raised(values[42].fetch, clusterrun.ClosureError)
assert text == 'UnknownFunctionError: no task has registered a function "sam"; did you mean "same"? Registered are "same"', text
c.join()
value = c.schedule("nobody")
text = raised(value.fetch, clusterrun.ClosureError)
assert raised(c.join, clusterrun.ClosureError) == text
c.join()
value = c.schedule("same", (1,), task="worker 1")
text = raised(value.fetch, clusterrun.ClosureError)
assert text.startswith('RefusedError: task: "worker 1" is not a task name'), text
raised(c.done, clusterrun.ClosureError)
assert c.done()
`)
}

// Keys, IDs, priorities and cancelling.
func TestPythonMoreThanTheSeed(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"same": same, "forever": forever, "fails": fails})
	program := p.background(h.host, 0, coordinates+`
assert c.schedule("same", (1,), key="k").fetch() == 1
print("kept", flush=True)
sys.stdin.readline()
assert c.schedule("same", (2,), key="k", timeout=1.5, max_losses=-1).fetch() == 1
first = c.remote_value(1)
assert first.fetch() == 1 and first.id == 1
assert raised(lambda: c.remote_value(100), ValueError) == "no closure 100; only 1 were scheduled"
waits = c.schedule("forever")
while waits.id is None: time.sleep(0.001)
again = c.remote_value(waits.id)
assert raised(lambda: waits.fetch(timeout=0.01), TimeoutError) == "closure 2 has not ended within 0.01s"
raised(lambda: c.fetch([first, waits], timeout=0.01), TimeoutError)
other = c.schedule("forever")
c.cancel(waits)
assert raised(waits.fetch, clusterrun.CancelledError) == CANCELLED == raised(again.fetch, clusterrun.CancelledError)
assert other.status is clusterrun.RemoteValueStatus.NOT_READY
c.cancel()
assert raised(other.fetch, clusterrun.CancelledError) == CANCELLED
c.join()  # it is no error
failed = c.schedule("fails", ("IndexError", "x"))
raised(c.join, IndexError)
assert raised(c.remote_value(failed.id).fetch, IndexError) == "x"
print("ok")
`)
	program.says("kept")
	h.queue.ContinueAsNew()
	program.goOn()
	assert.Equal(t, "ok\n", program.ends())
	assert.Equal(t, 1, h.queue.Calls("same"))
}

// The key of a function that has failed gives the same error to a program that schedules it
// again: after a restart of the chief, its join raises the error, too. With retry, the function
// is called again.
func TestPythonTheKeyOfAFailedFunction(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"same": same, "fails": fails})
	chief := `
good = c.schedule("same", (1,), key="good")
bad = c.schedule("fails", ("IndexError", "no"), key="bad")
try:
    c.join()
except IndexError as e:
    assert isinstance(e, clusterrun.ClosureError) and (e.task, e.closure) == ("worker-0", bad.id), e
    print(e, e.traceback.strip())
assert good.fetch() == 1 and raised(bad.fetch, IndexError) == "no"
`
	for range 2 {
		assert.Equal(t, "no Traceback: in fails\n", p.coordinates(h, chief))
		h.queue.ContinueAsNew()
	}
	assert.Equal(t, 1, h.queue.Calls("fails"))
	p.coordinates(h, `
for kwargs in ({"retry": True}, {}):
    value = c.schedule("same", (2,), key="bad", **kwargs)
    c.join()
    assert value.status is clusterrun.RemoteValueStatus.READY and value.fetch() == 2
assert raised(lambda: c.schedule("same", retry=True), ValueError) == "retry is set without a key; want the key of the closure that has failed"
`)
	assert.Equal(t, 2, h.queue.Calls("same"))
}

// Everything can be cancelled even while the queue is full.
func TestPythonCancelsWhatIsNotSent(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"forever": forever})
	h.queue.Limit(1) // the program learns of the limit with the first answer
	p.coordinates(h, `
values = []
def fill():
    for _ in range(10):
        values.append(c.schedule("forever", detached=True))
thread = threading.Thread(target=fill)
thread.start()
while thread.is_alive():
    c.cancel()
    thread.join(0.01)
c.cancel()
assert len(values) == 10
for value in values:
    assert raised(value.fetch, clusterrun.CancelledError) == CANCELLED
c.join()
`)
}

// A signal at any point of schedule takes the closure back: an exception is raised at each line
// in turn, and join never waits for a closure that was taken back.
func TestPythonTakesBackWhatASignalInterrupts(t *testing.T) {
	const interrupted = `
import itertools, linecache
def raises_at(left):
    def trace(frame, event, arg):
        name = frame.f_code.co_filename
        if not name.endswith(("/clusterrun/_session.py", "/threading.py")):
            return None
        before, line = (linecache.getline(name, frame.f_lineno + i).strip() for i in (-1, 0))
        # No signal is handled just before these, or between a block and its finally or the
        # release of its lock.
        if event == "line" and not line.startswith("with ") and line not in ("try:", "return") and before != "finally:":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return trace
    return trace
def goes_on(call):
    """Call it with an exception at each of its lines; once it has not come up, it has ended."""
    for n in itertools.count(1):
        left = [n]
        sys.settrace(raises_at(left))
        try:
            call()
            assert left[0] > 0, "the exception was lost"
            return
        except KeyboardInterrupt:
            yield n
        finally:
            sys.settrace(None)
`
	t.Run("room", func(t *testing.T) {
		p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"forever": forever, "same": same})
		p.coordinates(h, interrupted+`
values = []
for _ in goes_on(lambda: values.append(c.schedule("forever"))):
    c.join()
    assert not values
c.cancel(values)
value = c.schedule("same", (1,))
for _ in goes_on(c.join):
    assert c.schedule("same", (2,)).fetch() == 2
assert value.fetch() == 1
`)
	})
	t.Run("full", func(t *testing.T) {
		p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"forever": forever})
		h.client.size.Store(1)
		h.queue.Limit(1)
		p.coordinates(h, interrupted+`
values = [c.schedule("forever")]
def free_room():
    threading.Timer(0.01, c.cancel, values[-1:]).start()
free_room()
for _ in goes_on(lambda: values.append(c.schedule("forever"))):
    raised(values[-1].fetch, clusterrun.CancelledError)
    c.join()
    values.append(c.schedule("forever"))
    free_room()
c.cancel(values)
c.join()
`)
	})
}

// CC-60, CC-88: a coordinator that nothing refers to leaves nothing behind, and another
// coordinator continues. The same is true of a forked child and of the end of the program.
func TestPythonCoordinatorsEnd_CC60(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"same": same, "forever": forever})
	p.coordinates(h, `
import gc
def threads():
    return [t for t in threading.enumerate() if t.name in ("clusterrun-schedule", "clusterrun-outcomes")]
value = c.schedule("same", (1,))
assert len(threads()) == 2
del c
assert value.fetch() == 1, "its value keeps it"
before = threads()
del value
gc.collect()
for t in before: t.join(10)
assert not threads(), threads()
for i in range(100):
    clusterrun.ClusterCoordinator().schedule("same", (i,))
clusterrun.ClusterCoordinator().join()
c = clusterrun.ClusterCoordinator()
waits = c.schedule("forever")
ready = c.schedule("same", (7,))
assert ready.fetch() == 7
pid = os.fork()
if pid == 0:
    try:
        assert waits.status is clusterrun.RemoteValueStatus.ABORTED
        assert raised(waits.fetch, clusterrun.CancelledError) == ABORTED
        assert ready.fetch() == 7
        text = raised(lambda: c.schedule("same", (1,)), clusterrun.TaskError)
        assert text == "this coordinator belongs to the parent process; make another one here", text
        mine = clusterrun.ClusterCoordinator()
        assert mine is not c and mine.schedule("same", (8,)).fetch() == 8
        os._exit(0)
    finally:
        os._exit(1)
assert os.waitpid(pid, 0)[1] == 0
assert c.schedule("same", (9,)).fetch() == 9
for i in range(10):
    c.schedule("same", (i,))  # sent, although nobody waits
`)
	require.Eventually(t, func() bool { return h.queue.Calls("same") == 1+100+1+1+1+10 }, time.Minute, time.Millisecond, "%d", h.queue.Calls("same"))
	assert.Equal(t, "ok\n", p.output(coordinates[:strings.Index(coordinates, "c = ")]+`
try:
    clusterrun.ClusterCoordinator()
except ValueError as e:
    assert str(e).startswith("a ClusterCoordinator is for tasks: CLUSTERRUN_SOCKET is not set")
    print("ok")
`))
}

// The end of the run ends everything.
func TestPythonTheRunOfACoordinatorEnds(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"same": same, "forever": forever})
	program := p.background(h.host, 0, coordinates+`
waits = c.schedule("forever")
while waits.id is None: time.sleep(0.001)
print("waits", flush=True)
assert raised(waits.fetch, clusterrun.CancelledError) == "The run has ended: it is"
late = c.schedule("same", (1,))
assert raised(late.fetch, clusterrun.CancelledError) == ABORTED
assert late.status is clusterrun.RemoteValueStatus.ABORTED
print(raised(lambda: c.schedule("same", (1,)), clusterrun.TaskError))
print(raised(c.join, clusterrun.TaskError))
print(raised(c.done, clusterrun.TaskError))
`)
	program.says("waits")
	h.queue.End("it is")
	assert.Equal(t, strings.Repeat("the run has ended; closures can no longer be scheduled\n", 3), program.ends())
}

// A join that was interrupted by Ctrl-C leaves the error to the next join.
func TestPythonJoinIsInterrupted(t *testing.T) {
	g := make(gate)
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"fails": func(ctx context.Context, args []any, kwargs map[string]any) (any, error) {
		if _, err := g.wait(ctx, args, kwargs); err != nil {
			return nil, err
		}
		return fails(ctx, args, kwargs)
	}})
	program := p.background(h.host, 0, coordinates+`
c.schedule("fails", ("ValueError", "no"))
try:
    c.join()
except KeyboardInterrupt:
    print("interrupted", flush=True)
sys.stdin.readline()
print(raised(c.join, ValueError))
c.join()
`)
	require.Eventually(t, func() bool { return h.queue.Updates(closure.UpdateJoin) == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, program.cmd.Process.Signal(syscall.SIGINT))
	program.says("interrupted")
	close(g)
	program.goOn()
	assert.Equal(t, "no\n", program.ends())
}

// CC-98: the watchdog fires when nothing ends, but not if no closures are pending, and never
// after it was stopped.
func TestPythonWatchDog_CC98(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"same": same, "forever": forever})
	out := p.coordinates(h, `
import io, tempfile
fired = threading.Event()
with tempfile.TemporaryFile("w+") as file:
    dog = clusterrun.WatchDog(0.05, file, fired.set)
    assert fired.wait(30)
    dog.report_closure_done()
    fired.clear()
    assert fired.wait(30)
    dog.stop()
    file.seek(0)
    text = file.read()
    assert "no function has ended for 0.05 seconds" in text and "most recent call first" in text, text
time.sleep(0.1)
assert not [t for t in threading.enumerate() if "watchdog" in t.name]
os.environ["TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT"] = "7"
assert clusterrun.WatchDog(3).timeout == 7
del os.environ["TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT"]
assert clusterrun.WatchDog().timeout == -1
sys.stderr = open(os.environ["HOME"] + "/watchdog", "w+")
assert clusterrun.ClusterCoordinator(watchdog=0.05) is c
time.sleep(0.2)
assert sys.stderr.tell() == 0, "nothing is waited for"
value = c.schedule("forever")
while sys.stderr.tell() == 0: time.sleep(0.01)
c.cancel(value)
c.join()
print("ok")
`)
	assert.Equal(t, "ok\n", out)
}

// Many threads schedule, fetch and send requests side by side.
func TestPythonManyThreadsCoordinate(t *testing.T) {
	var sum counter
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"add": sum.add, "same": same})
	p.coordinates(h, `
def work(n):
    try:
        for i in range(50):
            c.schedule("add", (1,))
            assert c.schedule("same", ([n, i],)).fetch() == [n, i]
            if i % 20 == 0:
                c.join()
            c.done()
    except BaseException as e:
        print(repr(e), file=sys.stderr)
        os._exit(1)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for t in threads: t.start()
for t in threads: t.join()
c.join()
`)
	assert.Equal(t, int64(400), sum.sum.Load())
	assert.Equal(t, uint64(800), h.queue.Counts().Scheduled)
}

// Errors keep their types if Python has them.
func TestPythonTypesOfErrors(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"fails": fails})
	out := p.coordinates(h, `
import builtins
kinds = sorted(n for n in dir(builtins) if isinstance(getattr(builtins, n), type) and issubclass(getattr(builtins, n), Exception))
values = [c.schedule("fails", (kind, "text"), detached=True) for kind in kinds]
odd = []
for kind, value in zip(kinds, values):
    try:
        value.fetch()
    except clusterrun.ClosureError as e:
        if not isinstance(e, getattr(builtins, kind)) or str(e) != "text":
            odd.append((kind, str(e)))
print([kind for kind, text in odd if kind not in ("BaseExceptionGroup", "ExceptionGroup")])
for kind in ("KeyboardInterrupt", "print", "MyError", "", "UnavailableError", "ClosureTimeoutError"):
    try:
        c.schedule("fails", (kind, "text"), detached=True).fetch()
    except Exception as e:
        print(type(e).__name__, [b.__name__ for b in type(e).__bases__], e)
`)
	assert.Equal(t, strings.TrimSpace(`
[]
ClosureError ['Exception'] KeyboardInterrupt: text
ClosureError ['Exception'] print: text
ClosureError ['Exception'] MyError: text
ClosureError ['Exception'] text
UnavailableError ['ClosureError', 'UnavailableError'] text
ClosureTimeoutError ['ClosureError', 'TimeoutError'] text`)+"\n", out)
}

// goOn sends the line for which a program waits.
func (p *program) goOn() {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in)
	require.NoError(p.t, err)
}

// A closure that was first scheduled as detached is detached for everyone who schedules it by
// its key: no join waits for it.
func TestPythonJoinDoesNotWaitForAKnownDetachedClosure(t *testing.T) {
	g := make(gate)
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"wait": g.wait})
	p.coordinates(h, `c.schedule("wait", key="k", detached=True)`)
	p.coordinates(h, `
value = c.schedule("wait", key="k")
watch = threading.Timer(20, lambda: os._exit(3))
watch.daemon = True
watch.start()
c.join()
assert value.status is clusterrun.RemoteValueStatus.NOT_READY and value.id == 1
assert c.done()
`)
}

// When the tasks of a run must stop, queued closures may never be called. Waits for them end,
// so that the waiting threads do not become stragglers.
func TestPythonWaitsEndWhenTheTasksStop(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"forever": forever, "same": same})
	h.client.size.Store(2)
	program := p.background(h.host, 0, coordinates+`
same = c.schedule("same", (1,))
c.join()
for _ in range(9):  # eight execute, and two are queued
    v = c.schedule("forever")
def stopped(name, call):
    text = raised(call, clusterrun.StopError)
    with lock:
        said.append("%s: %s" % (name, text))
lock, said = threading.Lock(), []
waits = {"join": c.join, "schedule": lambda: [c.schedule("forever") for _ in range(9)], "fetch": lambda: c.fetch(v)}
threads = [threading.Thread(target=stopped, args=w) for w in waits.items()]
threads[0].start()
sys.stdin.readline()
threads[1].start()
threads[2].start()
for t in threads:
    t.join()
print("\n".join(sorted(said)), flush=True)
print(raised(lambda: c.fetch(v, timeout=60), clusterrun.StopError))
print(raised(c.join, clusterrun.StopError), c.done(), c.fetch(same))
c.cancel()
clusterrun.clear_stop()
c.join()
clusterrun.request_stop(reason="enough")
c.join()
print("nothing was left")
`)
	require.Eventually(t, func() bool { return h.queue.Updates(closure.UpdateJoin) == 2 }, time.Minute, time.Millisecond)
	program.goOn()
	h.stop(1, "POST", "", `{"error": {"kind": "IOError", "message": "no data"}}`)
	const why = "worker-1 stopped the run: IOError: no data"
	assert.Equal(t, "fetch: "+why+"\njoin: "+why+"\nschedule: "+why+"\n"+why+"\n"+why+" False 1\nnothing was left\n", program.ends())
}
