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

// program is a Python program that runs as a task alongside the test.
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

// says checks the next line that the program prints.
func (p *program) says(want string) {
	p.t.Helper()
	line := must.Get(p.out.ReadString('\n'))(p.t)
	assert.Equal(p.t, want+"\n", line)
}

// ends reads the rest of the program's output and waits for it to exit.
func (p *program) ends() string {
	p.t.Helper()
	rest := must.Get(io.ReadAll(p.out))(p.t)
	require.NoError(p.t, p.cmd.Wait())
	return string(rest)
}

func TestPythonStops_CO01(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 2)
	other := h.task(1)
	assert.Equal(t, "False False None True True True\n", p.run(h, 0, `
from clusterrun import *
print(should_stop(), wait_for_stop(0.01), request_stop(reason="enough"), should_stop(), wait_for_stop(0), wait_for_stop())`))
	assert.Equal(t, "enough", r.wish(t).Reason)
	assert.Equal(t, 1, h.stop(0, "GET", "", "").Seq)
	assert.True(t, other.ShouldStop())
}

// The run receives everything about an exception, and interprets it.
func TestPythonStopErrors(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 1)
	p.run(h, 0, pythonFile(t, "stop_errors"))
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

// A notice reaches a polling program, with the seconds left, and so does its end.
func TestPythonNotice(t *testing.T) {
	p := newPython(t)
	h, _ := newStopping(t, 1)
	program := p.background(h, 0, pythonFile(t, "notice"))
	program.says("ready")
	now := time.Now()
	given := now.Add(-time.Hour) // by a slow clock
	h.SetStopping(h.run, spec.Stopping{Seq: 1, Notice: &spec.StopNotice{From: spec.NoticeFromDrain, Given: now, Deadline: now.Add(time.Minute)}})
	program.says("True False")
	assert.Equal(t, "a host drains", h.stop(0, "GET", "", "").Notice.Reason)
	h.SetStopping(h.run, spec.Stopping{Seq: 2, Notice: &spec.StopNotice{Given: given, Deadline: given.Add(time.Minute)}})
	assert.Zero(t, h.stop(0, "GET", "", "").Notice.Left)
	h.SetStopping(h.run, spec.Stopping{Seq: 3})
	assert.Equal(t, "over\n", program.ends())
}

// Some threads wait and one polls while the server is killed twice.
func TestPythonStopAcrossServers_CO02(t *testing.T) {
	p := newPython(t)
	h, _ := newStopping(t, 1)
	program := p.background(h, 0, pythonFile(t, "stop_across_servers"))
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
	program.goOn()
	assert.Equal(t, "True True\n", program.ends(), "an older state changes nothing")
}

// Threads run in two processes, and one of them fails.
func TestPythonTiedCoordinators_CO08_CO12_SEED67(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 2)
	other := p.background(h, 1, pythonFile(t, "tied_coordinators"))
	other.says("ready")
	assert.Equal(t, "First True\n", p.run(h, 0, pythonFile(t, "tied_coordinators_2")))
	assert.Equal(t, "worker-0 stopped the run: RuntimeError: First | worker-0 RuntimeError First True True False\nTrue\n", other.ends())
	assert.Equal(t, "worker-0", r.wish(t).Task, "what came from the run does not go back")
}

// A clean stop for the coordinator is clean for the run. The run judges other kinds.
func TestPythonCleanStopsOfProcesses_CO11_SEED62(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 2)
	assert.Equal(t, "joined\nthe run's stop cannot be cleared\n", p.run(h, 0, pythonFile(t, "clean_stops_of_processes")))
	assert.Nil(t, r.wish(t).Error)
	assert.Equal(t, "ValueError: no more", r.wish(t).Reason)
	assert.Equal(t, "True joined\n", p.run(h, 1, `
import clusterrun
coord = clusterrun.Coordinator((), run=True)
print(coord.wait_for_stop(60), end=" ")
coord.join()
print("joined")
`), "clean by the rules of the run")
}

// A stop by an operator reaches a coordinator. Unreferenced coordinators are gone.
func TestPythonTheRunStopsACoordinator(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 1)
	program := p.background(h, 0, pythonFile(t, "the_run_stops_a_coordinator"))
	program.says("ready")
	h.SetStopping(h.run, spec.Stopping{Seq: 1, Stop: true, Error: &spec.TogetherError{Message: "x"}})
	assert.Equal(t, strings.Repeat("an operator stopped the run: x True\n", 2), program.ends())
	assert.Empty(t, r.heard())
}

// The process exits right after join, and yet the run has received everything, including a stop
// requested by a thread unknown to join.
func TestPythonJoinWaitsUntilTheRunKnows(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 1)
	release := r.hold()
	program := p.background(h, 0, pythonFile(t, "join_waits_until_the_run_knows"))
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
	assert.Equal(t, strings.Repeat("stop_refused run iris has ended\n", 2), p.run(h, 0, pythonFile(t, "stop_is_refused")))
	h = newHost(t, 1)
	assert.Equal(t, strings.Repeat("not_implemented this host worker does not support graceful stops\n", 4), p.run(h, 0, pythonFile(t, "stop_is_refused_2")))
}

// In a process other than a task, only its own stop requests count.
func TestPythonStopOutsideATask(t *testing.T) {
	p := newPython(t)
	assert.Equal(t, "True\nTrue ValueError: oops\n", p.output(pythonFile(t, "stop_outside_a_task")))
}

// A forked child follows the run on its own, with its own key.
func TestPythonStopAndForks(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 1)
	assert.Equal(t, "child True True True\nparent True True\n", p.run(h, 0, pythonFile(t, "stop_and_forks")))
	require.Len(t, r.heard(), 2)
	assert.NotEqual(t, r.heard()[0].Key, r.heard()[1].Key)
}

// Signal handlers and functions called at exit may send requests.
func TestPythonStopInAHandler(t *testing.T) {
	p := newPython(t)
	h, r := newStopping(t, 1)
	program := p.background(h, 0, pythonFile(t, "stop_in_a_handler"))
	program.says("ready")
	require.NoError(t, program.cmd.Process.Signal(syscall.SIGTERM))
	assert.Equal(t, "True True\n", program.ends())
	r.wish(t)

	assert.Equal(t, "True True\n", p.run(h, 0, `
import atexit, clusterrun
atexit.register(lambda: print(clusterrun.should_stop(), clusterrun.wait_for_stop(60)))
`), "first of all at the end, where some interpreters start no threads")
}

// Many threads request and poll a stop concurrently, and all agree.
func TestPythonStopSideBySide(t *testing.T) {
	p := newPython(t)
	h, _ := newStopping(t, 2)
	source := pythonFile(t, "stop_side_by_side")
	programs := []*program{p.background(h, 0, source), p.background(h, 1, source)}
	for _, program := range programs {
		assert.Equal(t, "True True 1\n", program.ends())
	}
}
