package closures

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/python"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// pyProcess is a task's Python process.
type pyProcess struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
	err   bytes.Buffer
}

// pythonFile returns a program in testdata/python.
func pythonFile(t *testing.T, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join("testdata/python", name+".py")))(t))
}

func (m *machine) pyProcess(task, source string, env ...string) *pyProcess {
	m.t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		m.t.Skip("there is no python3")
	}
	module := must.Get(python.Install(m.t.TempDir(), ""))(m.t)
	p := &pyProcess{t: m.t, cmd: exec.Command(program, "-W", "error", "-c", "import clusterrun, os, sys, time, threading\n"+source)}
	p.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + m.state, "PYTHONPATH=" + module, "PYTHONDONTWRITEBYTECODE=1",
		taskapi.SocketVar + "=" + m.paths[task],
	}, env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.cmd.Stderr = &p.err
	out := must.Get(p.cmd.StdoutPipe())(m.t)
	require.NoError(m.t, p.cmd.Start())
	p.lines = bufio.NewScanner(out)
	m.t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		_, _ = io.Copy(io.Discard, out)
		_ = p.cmd.Wait()
		if m.t.Failed() {
			m.t.Logf("%s of %s", p.err.String(), task)
		}
	})
	return p
}

// line returns the next line printed by the process.
func (p *pyProcess) line() string {
	p.t.Helper()
	// Otherwise the test would wait for a missing line until all tests time out.
	late := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
	defer late.Stop()
	require.True(p.t, p.lines.Scan(), "it has ended: %v", p.lines.Err())
	return p.lines.Text()
}

// end waits for the process to exit, and returns its exit code and stderr.
func (p *pyProcess) end() (int, string) {
	p.t.Helper()
	for p.lines.Scan() {
		p.t.Log(p.lines.Text())
	}
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode(), p.err.String()
}

func TestPythonServes(t *testing.T) {
	m := newMachine(t, "worker-0")
	m.pyProcess("worker-0", pythonFile(t, "serves"))
	c := calling(2, "add", 1, 2, 3)
	c.Kwargs = []byte(`{"x":{"y":null}}`)
	out := m.all(calling(1, "add", 5), c, calling(3, "fail.now"), calling(4, "ps"), calling(5, "nothing"), calling(6, "add"), calling(7, "connection"),
		calling(10, "bad", "large"), calling(11, "bad", "object"), calling(12, "bad", "nan"), calling(13, "bad", "loop"), calling(14, "bad", "surrogate"), calling(15, "bad", "largest"))
	assertText(t, `[6,[],{}]`, out[1])
	assertText(t, `[3,[3],{"x":{"y":null}}]`, out[2])
	assertText(t, `error KeyError: 'no'`, out[3])
	traceback := out[3].Error.Traceback
	assert.Regexp(t, `(?s)^Traceback.*line 9, in fail\n.*line 8, in inner\n.*KeyError: 'no'\n$`, traceback)
	assert.NotContains(t, traceback, "clusterrun/", "the caller is nobody's business")
	assert.Equal(t, "worker-0", out[3].Task)
	assertText(t, "unavailable UnavailableError: no answer", out[4])
	assert.Equal(t, "ps-0", out[4].Error.Task)
	assertText(t, "null", out[5])
	assertText(t, "error TypeError: add() missing 1 required positional argument: 'a'", out[6])
	assertText(t, "error ConnectionError: guess", out[7])
	assertText(t, "error ValueTooLargeError: the value of bad has 262145 bytes of JSON; the limit is 262144: write it to a file and return the file's path", out[10])
	assert.Contains(t, text(out[11]), `object object at 0x`)
	assertText(t, `{"$clusterrun.number":"NaN"}`, out[12])
	assertText(t, `["\u003clist that contains itself\u003e"]`, out[13])
	assertText(t, `"\udc80"`, out[14])
	assert.Len(t, out[15].Value, 256<<10)
	// Errors of any size must arrive, or callers would wait forever.
	long := m.all(calling(30, "lengthy", "kind"), calling(31, "lengthy", "message"), calling(32, "lengthy", "task"), calling(33, "lengthy", "str"))
	assert.Equal(t, strings.Repeat("x", maxKind), long[30].Error.Kind)
	assert.Len(t, long[31].Error.Message, closure.MaxError)
	assert.Equal(t, strings.Repeat("x", maxTask), long[32].Error.Task)
	assertText(t, "error Unwritable: the error has no readable text", long[33])
	assertText(t, "error UnknownFunctionError: function 'x' is not registered here; registered are add, bad, connection, fail.now, lengthy, nothing, ps", m.one(calling(20, "x")))
}

func TestPythonRefusesWhatCannotWork(t *testing.T) {
	m := newMachine(t, "worker-0")
	p := m.pyProcess("worker-0", pythonFile(t, "refuses_what_cannot_work"))
	var got []string
	for p.lines.Scan() {
		got = append(got, p.lines.Text())
	}
	assert.Equal(t, []string{
		"ValueError no function is registered: decorate the functions to be called with @clusterrun.function",
		"TypeError only a function can be registered, not 7",
		"TypeError write @clusterrun.function(name='name')",
		"TypeError later is a coroutine function: register one that calls asyncio.run",
		`ValueError 'a\nb' is not a name for a function: want 1 to 200 printable bytes`,
		"ValueError function 'f' is already registered",
		"ValueError TF_COORDINATOR_SCHEDULE_START_DELAY is 'soon'; use a number of seconds, such as 5",
		"ValueError serve is for tasks: CLUSTERRUN_SOCKET is not set, clusterrun did not start this process",
		"0.0 15.0 10.0 5.0 1.5 0.0 ", // SEED-54, D-10
	}, got)
}

// SEED-45, SEED-46
func TestPythonResources(t *testing.T) {
	m := newMachine(t, "worker-0")
	p := m.pyProcess("worker-0", pythonFile(t, "resources"))
	deep := using(calling(3, "use", resource(1)), 1, 3)
	deep.Kwargs = []byte(`{"n":1,"list":[{"$clusterrun.resource":1}]}`)
	out := m.all(using(calling(1, "use", resource(1)), 1), using(calling(2, "use", resource(1), 2), 1), deep,
		using(calling(4, "use", resource(2)), 2), using(calling(5, "use", resource(2)), 2), using(calling(6, "use", resource(4)), 4), calling(7, "same", resource(1)))
	assertText(t, "[40,0,[]]", out[1])
	assertText(t, "[40,2,[]]", out[2])
	assertText(t, "[40,1,[40]]", out[3])
	assertText(t, `input InputError: Input has an error, the original exception is OSError('disk is gone'), error message is disk is gone.`, out[4])
	assert.Contains(t, out[4].Error.Traceback, "in fails")
	assert.Equal(t, out[4].Error.Message, out[5].Error.Message)
	assert.Contains(t, out[6].Error.Message, `function 'nobody has this' is not registered here`)
	assertText(t, `{"$clusterrun.resource":1}`, out[7])
	assertText(t, "unavailable UnavailableError: ps-1 does not answer", m.one(using(calling(8, "use", resource(3)), 3)))
	assertText(t, "[7,0,[]]", m.one(using(calling(9, "use", resource(3)), 3)))
	assert.ElementsMatch(t, []string{"loads", "fails"}, []string{p.line(), p.line()}, "each was built once")
}

// Cancelling raises CancelledError in the function, even while it waits. A function that catches
// everything can check whether it was cancelled.
func TestPythonCancel(t *testing.T) {
	m := newMachine(t, "worker-0")
	p := m.pyProcess("worker-0", pythonFile(t, "cancel"))
	wants := map[string]string{
		"sleeps": "cancelled CancelledError: " + closure.TextCancelled,
		"loops":  "cancelled CancelledError: " + closure.TextCancelled,
		"locks":  `"all the same"`,
		"asks":   "error ValueError: stopped",
	}
	id := uint64(0)
	for name, want := range wants {
		id += 2
		outcome := make(chan closure.Outcome)
		go func() { outcome <- m.one(calling(id, name)) }()
		require.Equal(t, name, p.line())
		m.cancel(time.Minute, id)
		assertText(t, want, <-outcome)
		switch name {
		case "sleeps":
			assert.Equal(t, "True", p.line())
		case "locks":
			assert.Equal(t, "CancelledError True", p.line())
		}
		assertText(t, "1", m.one(calling(id+1, "f")))
	}
	assertText(t, "error CancelledError: of its own accord", m.one(calling(50, "raises")))
}

// The signal that should interrupt the main thread's wait may arrive just before the wait, and be
// lost.
func TestPythonWakesUpAgain(t *testing.T) {
	m := newMachine(t, "worker-0")
	p := m.pyProcess("worker-0", pythonFile(t, "wakes_up_again"))
	outcome := make(chan closure.Outcome)
	go func() { outcome <- m.one(calling(1, "sleeps")) }()
	require.Equal(t, "sleeps", p.line())
	m.cancel(time.Hour, 1)
	assertText(t, "cancelled CancelledError: "+closure.TextCancelled, <-outcome)
	assertText(t, "2", m.one(calling(2, "f")))
}

// If a call does not return, its process is restarted, which cancels the call.
func TestAPythonFunctionThatIsStuckCostsItsProcess(t *testing.T) {
	m := newMachine(t, "worker-0")
	m.restartErr = errors.New("the supervisor does not answer")
	p := m.pyProcess("worker-0", pythonFile(t, "a_python_function_that_is_stuck_costs_its_process"))
	outcome := make(chan closure.Outcome)
	go func() { outcome <- m.one(calling(1, "stuck")) }()
	require.Equal(t, "stuck", p.line())
	m.cancel(50*time.Millisecond, 1)
	require.Equal(t, "worker-0", <-m.restarted)
	require.Equal(t, "worker-0", <-m.restarted, "again, because it failed")
	require.NoError(t, p.cmd.Process.Kill())
	assertText(t, "cancelled CancelledError: "+closure.TextCancelled, <-outcome)
}

// A closure may be cancelled at any moment. It ends once, and no other call is affected.
func TestPythonCancelAtAnyMoment(t *testing.T) {
	m := newMachine(t, "worker-0")
	m.pyProcess("worker-0", pythonFile(t, "cancel_at_any_moment"))
	m.awaitServing(1)
	var chunk atomic.Uint64 // the closures that are being called
	stop := make(chan struct{})
	cancelling := make(chan struct{})
	go func() {
		defer close(cancelling)
		for i := uint64(0); ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(i%7) * 50 * time.Microsecond):
				id := chunk.Load()*30 + 3*(i%10) + 3
				m.cancel(time.Minute, id)
			}
		}
	}()
	cancelled := 0
	for range uint64(40) {
		var list []closure.Closure
		for i := range uint64(30) {
			id := chunk.Load()*30 + i + 1
			list = append(list, calling(id, "f", id))
		}
		for id, o := range m.all(list...) {
			if o.Kind == closure.OutcomeCancelled {
				assert.Zero(t, id%3)
				cancelled++
				continue
			}
			assertText(t, fmt.Sprint(id), o)
		}
		chunk.Add(1)
	}
	close(stop)
	<-cancelling
	t.Log(cancelled, "were cancelled")
	assert.Empty(t, m.restarted)
}

func TestPythonGoesOnWhenTheHostIsKilled(t *testing.T) {
	m := newMachine(t, "worker-0")
	p := m.pyProcess("worker-0", pythonFile(t, "goes_on_when_the_host_is_killed"))
	m.awaitServing(1)
	l := make(chan struct{})
	go func() {
		defer close(l)
		_, _ = m.now().Run(t.Context(), closure.Batch{Closures: []closure.Closure{calling(1, "long")}}, false)
	}()
	require.Equal(t, "began", p.line())
	m.kill()
	<-l
	assertText(t, "2", m.one(calling(2, "f", 2)))
	m.kill()
	assertText(t, `"done"`, m.one(calling(1, "long")))
	m.awaitServing(1)
}

// SystemExit exits the process, and its call is lost.
func TestPythonEnds(t *testing.T) {
	for name, code := range map[string]int{"sys.exit(7)": 7, "sys.exit(0)": 1, "os._exit(8)": 8, "raise KeyboardInterrupt": -1} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, "worker-0", "worker-1")
			p := m.pyProcess("worker-0", `
@clusterrun.function
def f():
    `+name+`
clusterrun.serve()
`)
			outcome := make(chan closure.Outcome)
			go func() { outcome <- m.one(calling(1, "f")) }()
			got, stderr := p.end()
			assert.Equal(t, code, got, stderr)
			o := <-outcome
			assert.Equal(t, closure.OutcomeLost, o.Kind)
			assert.True(t, o.Started)
		})
	}
}

// Functions may fork. A child does not serve, and exits when it returns from the function.
func TestPythonForks(t *testing.T) {
	m := newMachine(t, "worker-0")
	p := m.pyProcess("worker-0", pythonFile(t, "forks"))
	for id := range uint64(2) {
		assertText(t, "[true,false,1]", m.one(calling(2*id+1, "f")))
		assertText(t, "1", m.one(calling(2*id+2, "g")))
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	_, stderr := p.end()
	assert.Equal(t, 2, strings.Count(stderr, "the function f forked, and the child process returned from it; exit the child with os._exit"), stderr)
}

// A task's forked child serves like any process, and its exit is also noticed.
func TestTheEndOfAForkedChildIsNoticed(t *testing.T) {
	m := newMachine(t, "worker-0")
	p := m.pyProcess("worker-0", pythonFile(t, "the_end_of_a_forked_child_is_noticed"))
	parent := p.line()
	m.awaitServing(2)
	o := m.one(calling(1, "dies"))
	assert.Equal(t, closure.OutcomeLost, o.Kind)
	assert.True(t, o.Started)
	m.awaitServing(1)
	o = m.one(calling(2, "pid"))
	assert.NotEmpty(t, text(o))
	assert.NotEqual(t, parent, text(o))
	m.one(calling(3, "dies"))
	m.awaitServing(0)
}

func TestPythonIsToldThatItHasEnded(t *testing.T) {
	m := newMachine(t, "worker-0")
	p := m.pyProcess("worker-0", "clusterrun.function(print)\nclusterrun.serve()\n")
	m.awaitServing(1)
	m.now().ProcessEnded("worker-0", "")
	code, stderr := p.end()
	assert.Equal(t, 1, code)
	assert.Contains(t, stderr, "clusterrun.TaskError: the host considers this process exited")
}

func TestPythonReturnsLargeValues(t *testing.T) {
	m := newMachine(t, "worker-0")
	m.pyProcess("worker-0", `
clusterrun.function(lambda: "x" * ((256 << 10) - 2), name="f")
clusterrun.serve()
`)
	var list []closure.Closure
	for id := range uint64(40) {
		list = append(list, calling(id+1, "f"))
	}
	out := m.all(list...)
	require.Len(t, out, 40)
	for _, o := range out {
		assert.Len(t, o.Value, closure.MaxBytes)
	}
}
