package taskapi

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// program is a Python program that runs as a task while the test does something.
type program struct {
	t   *testing.T
	cmd *exec.Cmd
	out *bufio.Reader
	in  io.Writer
}

func (p *python) background(h *host, i int, source string) *program {
	p.t.Helper()
	cmd := p.command(source)
	cmd.Env = append(cmd.Env, SocketVar+"="+h.paths[i])
	out := must.Get(cmd.StdoutPipe())(p.t)
	in := must.Get(cmd.StdinPipe())(p.t)
	require.NoError(p.t, cmd.Start())
	p.t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	return &program{p.t, cmd, bufio.NewReader(out), in}
}

// says checks the next line the program prints.
func (p *program) says(want string) {
	p.t.Helper()
	line := must.Get(p.out.ReadString('\n'))(p.t)
	assert.Equal(p.t, want+"\n", line)
}

// ends reads the rest of the program's output and waits for its end.
func (p *program) ends() string {
	p.t.Helper()
	rest := must.Get(io.ReadAll(p.out))(p.t)
	require.NoError(p.t, p.cmd.Wait())
	return string(rest)
}

// CO-01, SEED-65
func TestPythonStops_CO01_SEED65(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 2)
	other := h.task(1)
	assert.Equal(t, "False False None True True True None False False\n", p.run(h, 0, `
from clusterrun import *
print(should_stop(), wait_for_stop(0.01), request_stop(reason="enough"), should_stop(), wait_for_stop(0), wait_for_stop(),
      clear_stop(), should_stop(), wait_for_stop(-1))`))
	assert.Equal(t, "enough", r.wish(t).Reason)
	assert.Equal(t, 2, h.stop(0, "GET", "", "").Seq)
	assert.False(t, other.ShouldStop())
}

// The run receives everything about an exception, and decides what it means.
func TestPythonStopErrors(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 1)
	p.run(h, 0, `
import clusterrun, sys
def fails():
    raise ValueError("loss is \udcff")
try:
    fails()
except ValueError as e:
    clusterrun.request_stop(e, reason="diverged")
try:
    next(iter([]))
except StopIteration:
    clusterrun.request_stop(sys.exc_info())
clusterrun.request_stop(RuntimeError("x" * (10 << 20)), reason="ü" * (10 << 20))
clusterrun.request_stop("no exception")
`)
	require.Len(t, r.heard(), 4)
	first := r.heard()[0]
	assert.Equal(t, "diverged", first.Reason)
	assert.Equal(t, "ValueError", first.Error.Kind)
	assert.Equal(t, "loss is ?", first.Error.Message)
	assert.Contains(t, first.Error.Traceback, "in fails\n")
	assert.Equal(t, "StopIteration", r.heard()[1].Error.Kind)
	assert.Empty(t, r.heard()[1].Error.Message)
	assert.InDelta(t, wire.MaxStopText, len(r.heard()[2].Error.Message), 3)
	assert.InDelta(t, wire.MaxStopText, len(r.heard()[2].Reason), 3)
	assert.Equal(t, "ValueError", r.heard()[3].Error.Kind)
	assert.Equal(t, "ex must be a tuple or sys.exc_info must return the current exception: no exception", r.heard()[3].Error.Message, "as in the seed")
	keys := map[string]bool{}
	for _, w := range r.heard() {
		keys[w.Key] = true
	}
	assert.Len(t, keys, 4)
}

// A notice reaches a program that polls, with the seconds that are left, and its end as well.
func TestPythonNotice(t *testing.T) {
	p := newPython(t)
	h, _ := newStopping(t, 1)
	program := p.background(h, 0, `
import clusterrun
assert clusterrun.preempted() is None
print("ready", flush=True)
while clusterrun.preempted() is None:
    pass
first = clusterrun.preempted()
print(50 < first <= 60 and clusterrun.preempted() <= first, clusterrun.should_stop(), flush=True)
while clusterrun.preempted() is not None:
    pass
print("over")
`)
	program.says("ready")
	now := time.Now()
	given := now.Add(-time.Hour) // by a clock that is late
	h.SetStopping(h.run, spec.Stopping{Seq: 1, Notice: &spec.StopNotice{From: spec.NoticeFromDrain, Given: now, Deadline: now.Add(time.Minute)}})
	program.says("True False")
	assert.Equal(t, "a host drains", h.stop(0, "GET", "", "").Notice.Reason)
	h.SetStopping(h.run, spec.Stopping{Seq: 2, Notice: &spec.StopNotice{Given: given, Deadline: given.Add(time.Minute)}})
	assert.Zero(t, h.stop(0, "GET", "", "").Notice.Left)
	h.SetStopping(h.run, spec.Stopping{Seq: 3})
	assert.Equal(t, "over\n", program.ends())
}

// CO-02: some threads wait and one polls while the server is killed twice.
func TestPythonStopAcrossServers_CO02(t *testing.T) {
	p := newPython(t)
	h, _ := newStopping(t, 1)
	program := p.background(h, 0, `
import clusterrun, threading, time
assert not clusterrun.should_stop()
told = []
threads = [threading.Thread(target=lambda: told.append(clusterrun.wait_for_stop())) for _ in range(20)]
for t in threads: t.start()
print("ready", flush=True)
while not clusterrun.should_stop():
    time.sleep(0.001)
for t in threads: t.join()
print(told == [True] * 20, flush=True)
while clusterrun.should_stop():
    time.sleep(0.001)
print(clusterrun.wait_for_stop(0.01), flush=True)
print(clusterrun.wait_for_stop(60))
`)
	program.says("ready")
	awaitStopWaiters(t, 1)
	require.NoError(t, h.Close())
	h.startKnowing(spec.Stopping{})
	awaitStopWaiters(t, 1)
	require.NoError(t, h.Close())
	h.startKnowing(spec.Stopping{Seq: 1, Stop: true})
	program.says("True")
	require.NoError(t, h.Close())
	h.startKnowing(spec.Stopping{})
	awaitStopWaiters(t, 1)
	h.SetStopping(h.run, spec.Stopping{Seq: 2})
	program.says("False")
	h.SetStopping(h.run, spec.Stopping{Seq: 3, Stop: true})
	assert.Equal(t, "True\n", program.ends())
}

// CO-08, CO-12, SEED-67: threads run in two processes, and one of them fails.
func TestPythonTiedCoordinators_CO08_CO12_SEED67(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 2)
	other := p.background(h, 1, `
import clusterrun, sys, threading, traceback
coord = clusterrun.Coordinator(run=True)
looper = clusterrun.LooperThread.loop(coord, 0.001, lambda: None)
print("ready", flush=True)
try:
    coord.join()
except clusterrun.StopError as e:
    print(e, "|", e.by, e.kind, e.message, "in fails" in e.traceback, coord.should_stop(), looper.is_alive())
    print("in fails\n" in traceback.format_exc())
`)
	other.says("ready")
	assert.Equal(t, "First True\n", p.run(h, 0, `
import clusterrun, threading
coord = clusterrun.Coordinator(run=True)
def fails():
    raise RuntimeError("First")
def run(body):
    with coord.stop_on_exception():
        body()
threads = [threading.Thread(target=run, args=(body,)) for body in (fails, coord.wait_for_stop)]
for t in threads: t.start()
try:
    coord.join(threads)
except RuntimeError as e:
    print(e, clusterrun.should_stop())
`))
	assert.Equal(t, "worker-0 stopped the run: RuntimeError: First | worker-0 RuntimeError First True True False\nTrue\n", other.ends())
	assert.Equal(t, "worker-0", r.wish(t).Task, "what came from the run does not go back")
}

// CO-11, SEED-62: a stop that is clean for the coordinator is clean for the run. About other
// kinds, the run decides.
func TestPythonCleanStopsOfProcesses_CO11_SEED62(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 2)
	assert.Equal(t, "joined\nraised StopIteration()\n", p.run(h, 0, `
import clusterrun
coord = clusterrun.Coordinator((ValueError,), run=True)
coord.request_stop(ValueError("no more"))
coord.join()
print("joined")
coord.clear_stop()
assert not clusterrun.should_stop()
coord.request_stop(StopIteration())
try:
    coord.join()
except StopIteration as e:
    print("raised", repr(e))
`))
	require.Len(t, r.heard(), 2)
	assert.Nil(t, r.heard()[0].Error)
	assert.Equal(t, "ValueError: no more", r.heard()[0].Reason)
	assert.Equal(t, "StopIteration", r.heard()[1].Error.Kind)
	assert.Equal(t, "True joined\n", p.run(h, 1, `
import clusterrun
coord = clusterrun.Coordinator((), run=True)
print(coord.wait_for_stop(60), end=" ")
coord.join()
print("joined")
`), "clean by the rules of the run")
}

// A stop by an operator, its clear, and another stop reach a coordinator. Coordinators that
// nothing refers to are gone.
func TestPythonTheRunStopsACoordinator(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 1)
	program := p.background(h, 0, `
import clusterrun, gc, time
for i in range(100):
    clusterrun.Coordinator(run=True)
coord = clusterrun.Coordinator(run=True)
gc.collect()
assert len(clusterrun.stop._listeners) == 1
print("ready", flush=True)
assert coord.wait_for_stop(60)
coord.join()
print(coord.joined, flush=True)
while coord.should_stop():
    time.sleep(0.001)
print(coord.joined, flush=True)
assert coord.wait_for_stop(60)
for _ in range(2):
    try:
        coord.join()
    except clusterrun.StopError as e:
        print(e, len(e.__traceback__.tb_frame.f_code.co_name) > 0)
`)
	program.says("ready")
	h.SetStopping(h.run, spec.Stopping{Seq: 1, Stop: true})
	program.says("True")
	h.SetStopping(h.run, spec.Stopping{Seq: 2})
	program.says("False")
	h.SetStopping(h.run, spec.Stopping{Seq: 3, Stop: true, Error: &spec.TogetherError{Message: "x"}})
	assert.Equal(t, strings.Repeat("an operator stopped the run: x True\n", 2), program.ends(), "SEED-66")
	assert.Empty(t, r.heard())
}

// The process ends right after join, and yet the run has received everything, including a stop
// requested by a thread that join does not know.
func TestPythonJoinWaitsUntilTheRunKnows(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 1)
	release := r.hold()
	program := p.background(h, 0, `
import clusterrun, os, threading
coord = clusterrun.Coordinator(run=True)
threading.Thread(target=coord.request_stop, daemon=True).start()
coord.wait_for_stop()
print("stopped", flush=True)
coord.join()
os._exit(0)
`)
	program.says("stopped")
	<-r.asked
	release()
	assert.Empty(t, program.ends())
	r.wish(t)
}

func TestPythonStopIsRefused(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 1)
	r.refuses("run iris has ended")
	assert.Equal(t, strings.Repeat("stop_refused run iris has ended\n", 3), p.run(h, 0, `
import clusterrun
coord = clusterrun.Coordinator(run=True)
coord.request_stop()
for call in (clusterrun.request_stop, clusterrun.clear_stop, coord.join):
    try:
        call()
    except clusterrun.TaskError as e:
        print(e.code, e)
coord.clear_stop()
assert not coord.should_stop()
`))
	h = newHost(t, 1)
	assert.Equal(t, strings.Repeat("not_implemented this host worker does not support graceful stops\n", 4), p.run(h, 0, `
import clusterrun
for call in (clusterrun.should_stop, clusterrun.should_stop, clusterrun.wait_for_stop, clusterrun.request_stop):
    try:
        call()
    except clusterrun.TaskError as e:
        print(e.code, e)
`))
}

// SEED-28: in a process that is not a task, only its own requests to stop count.
func TestPythonStopOutsideATask(t *testing.T) {
	p := newPython(t)
	assert.Equal(t, "True\nTrue ValueError: oops\n", p.output(`
import clusterrun, threading
assert not clusterrun.should_stop() and not clusterrun.wait_for_stop(0.01)
waits = threading.Thread(target=lambda: print(clusterrun.wait_for_stop()))
waits.start()
clusterrun.request_stop(reason="enough")
waits.join()
assert clusterrun.should_stop()
clusterrun.clear_stop()
assert not clusterrun.should_stop()
tied = clusterrun.Coordinator(run=True)
assert not tied.should_stop()
try:
    raise ValueError("oops")
except ValueError as e:
    tied.request_stop(e)
try:
    tied.join()
except ValueError as e:
    print(clusterrun.should_stop(), "ValueError:", e)
coord = clusterrun.Coordinator()
coord.request_stop()
coord.join()
`))
}

// A forked child follows the run by itself, with its own key.
func TestPythonStopAndForks(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 1)
	assert.Equal(t, "child True True True\nparent True True\n", p.run(h, 0, `
import clusterrun, os, threading
coord = clusterrun.Coordinator(run=True)
assert not clusterrun.should_stop()
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    assert not coord.should_stop() and not clusterrun.should_stop()
    os.write(write, b"x")
    print("child", coord.wait_for_stop(60), clusterrun.wait_for_stop(60), coord.should_stop(), flush=True)
    clusterrun.request_stop()
    os._exit(0)
os.read(read, 1)
clusterrun.request_stop()
assert os.waitpid(pid, 0)[1] == 0
print("parent", coord.wait_for_stop(60), clusterrun.should_stop())
`))
	require.Len(t, r.heard(), 2)
	assert.NotEqual(t, r.heard()[0].Key, r.heard()[1].Key)
}

// A signal handler may send requests, and so may a function that is called at exit.
func TestPythonStopInAHandler(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 1)
	program := p.background(h, 0, `
import atexit, clusterrun, signal
coord = clusterrun.Coordinator(run=True)
signal.signal(signal.SIGTERM, lambda *_: coord.request_stop())
atexit.register(lambda: print(clusterrun.should_stop(), clusterrun.wait_for_stop(0.1)))
print("ready", flush=True)
coord.wait_for_stop()
coord.join()
`)
	program.says("ready")
	require.NoError(t, program.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, "True True\n", program.ends())
	r.wish(t)

	assert.Equal(t, "True True\n", p.run(h, 0, `
import atexit, clusterrun
atexit.register(lambda: print(clusterrun.should_stop(), clusterrun.wait_for_stop(60)))
`), "first of all at the end, where some interpreters start no threads")
}

// Many threads request, clear and poll a stop side by side, and in the end all agree.
func TestPythonStopSideBySide(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 2)
	h.unpaced()
	const source = `
import clusterrun, threading, time
coord = clusterrun.Coordinator(run=True)
def work():
    for i in range(20):
        clusterrun.request_stop(ValueError(i))
        coord.should_stop()
        coord.request_stop()
        clusterrun.clear_stop()
        coord.clear_stop()
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print("done", flush=True)
while clusterrun.stop._watch.said.get("by") != "ps-0":
    time.sleep(0.001)
print(coord.wait_for_stop(60), clusterrun.should_stop())
`
	programs := []*program{p.background(h, 0, source), p.background(h, 1, source)}
	for _, program := range programs {
		program.says("done")
	}
	now := must.Get(r.ClearStop(testContext(t), h.ids[0]))(t)
	seq := now.Seq
	h.SetStopping(h.run, spec.Stopping{Seq: seq})
	h.SetStopping(h.run, spec.Stopping{Seq: seq + 1, Stop: true, By: "ps-0"})
	for _, program := range programs {
		assert.Equal(t, "True True\n", program.ends())
	}
}
