package python

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/stacks"
	"github.com/clusterrun/clusterrun/tests/must"
)

// interpreter is an interpreter with the package, and a task's log directory.
type interpreter struct {
	t       *testing.T
	program string
	path    string // PYTHONPATH
	logs    string
}

func newInterpreter(t *testing.T) *interpreter {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	module := must.Get(Install(t.TempDir(), ""))(t)
	return &interpreter{t, program, module, t.TempDir()}
}

// newHooked returns an interpreter with the hook, as in a task. Its programs do not import the
// package.
func newHooked(t *testing.T) *interpreter {
	t.Helper()
	p := newInterpreter(t)
	hook := must.Get(InstallHook(t.TempDir(), ""))(t)
	p.path = hook
	return p
}

// interpreters returns the installed interpreters of these versions. It ignores scripts with such
// names, such as pyenv's, which start several shells.
func interpreters(t *testing.T, versions ...string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, version := range versions {
		if program, err := exec.LookPath("python" + version); err == nil {
			text := must.Get(os.ReadFile(program))(t)
			if !bytes.HasPrefix(text, []byte("#!")) {
				found[version] = program
			}
		}
	}
	if len(found) == 0 {
		t.Skip("there is no python with its version in its name")
	}
	return found
}

func (p *interpreter) command(source string) *exec.Cmd {
	cmd := exec.Command(p.program, "-c", source)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.logs, "PYTHONPATH=" + p.path, "PYTHONDONTWRITEBYTECODE=1",
		"CLUSTERRUN_STACK_SIGNAL=" + strconv.Itoa(stacks.Signal), "CLUSTERRUN_STACK_FILE=" + stacks.AnswerBase(p.logs),
	}
	cmd.Dir = p.logs // the package would be found here
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stderr = os.Stderr
	return cmd
}

// start starts a program and waits until it prints "ready".
func (p *interpreter) start(source string, env ...string) (pid int) {
	p.t.Helper()
	cmd := p.command(source)
	cmd.Env = append(cmd.Env, env...)
	out := must.Get(cmd.StdoutPipe())(p.t)
	require.NoError(p.t, cmd.Start())
	p.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(p.t)
	require.Equal(p.t, "ready\n", line)
	return cmd.Process.Pid
}

func (p *interpreter) output(source string, env ...string) string {
	p.t.Helper()
	cmd := p.command(source)
	cmd.Env = append(cmd.Env, env...)
	out := must.Get(cmd.Output())(p.t)
	return string(out)
}

func (p *interpreter) capture(pid int) string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	results := must.Get(stacks.Capture(ctx, []stacks.Task{{Name: "worker-0", PID: pid, LogDir: p.logs, Root: p.logs}}, ""))(p.t)
	require.Len(p.t, results, 1)
	require.NoError(p.t, results[0].Err)
	text := must.Get(os.ReadFile(results[0].File))(p.t)
	return string(text)
}

func TestAllThreadsOfAProgramThatIsStuck(t *testing.T) {
	p := newInterpreter(t)
	pid := p.start(`
import clusterrun, threading
lock = threading.Lock()
def waits_for_a_lock():
    with lock:
        pass
def also_waits():
    waits_for_a_lock()
lock.acquire()
for _ in range(3):
    threading.Thread(target=also_waits).start()
print("ready", flush=True)
waits_for_a_lock()
`)
	text := p.captureUntil(pid, func(text string) bool { return strings.Count(text, "in waits_for_a_lock") == 4 })
	_, own, _ := strings.Cut(text, "--- by its own account\n")
	own, kernel, _ := strings.Cut(own, "--- by the kernel's\n")
	assert.Equal(t, 4, strings.Count(own, "in waits_for_a_lock"), text)
	assert.Equal(t, 3, strings.Count(own, "in also_waits"), text)
	assert.Equal(t, 4, strings.Count(kernel, "\nthread ")+strings.Count(kernel[:7], "thread "), text)
	assert.Contains(t, kernel, "in futex")
}

// captureUntil captures until a program has reached its final place, which is after it prints
// "ready".
func (p *interpreter) captureUntil(pid int, there func(text string) bool) (text string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		text = p.capture(pid)
		return there(text)
	}, time.Minute, 100*time.Millisecond)
	return text
}

// The handler does not need an interpreter that is busy.
func TestAProgramStuckInNativeCode(t *testing.T) {
	p := newInterpreter(t)
	pid := p.start(`
import clusterrun, ctypes
def calls_native_code():
    ctypes.PyDLL(None).sleep(1000)  # holds the lock of the interpreter
print("ready", flush=True)
calls_native_code()
`)
	p.captureUntil(pid, func(text string) bool { return strings.Contains(text, "in calls_native_code") })
}

func TestForkedChildrenAnswerForThemselves(t *testing.T) {
	p := newInterpreter(t)
	pid := p.start(`
import clusterrun, os, time
def child():
    print("ready", flush=True)
    time.sleep(1000)
if os.fork() == 0:
    child()
def parent():
    time.sleep(1000)
parent()
`)
	text := p.captureUntil(pid, func(text string) bool { return strings.Contains(text, "in parent") })
	assert.Equal(t, 2, strings.Count(text, "by its own account\n"), text)
	assert.Equal(t, 1, strings.Count(text, "in child"), text)
	assert.Equal(t, 1, strings.Count(text, "in parent"), text)
}

// A program that replaces an opted-in program has not opted in itself.
func TestAProgramAfterExec(t *testing.T) {
	p := newInterpreter(t)
	pid := p.start(`
import clusterrun, os
os.execvp("bash", ["bash", "-c", "echo ready; while :; do sleep 1000; done"])
`)
	assert.NotContains(t, p.capture(pid), "by its own account")
	require.NoError(t, syscall.Kill(pid, 0))
}

// The number of a descriptor that a program has closed may now belong to another file.
func TestAProgramThatClosesAllDescriptors(t *testing.T) {
	p := newInterpreter(t)
	pid := p.start(`
import clusterrun, os, time
os.closerange(3, 2000)
f = open(os.environ["HOME"] + "/precious", "w")
assert f.fileno() == 3
print("ready", flush=True)
time.sleep(1000)
`)
	assert.NotContains(t, p.capture(pid), "by its own account")
	info := must.Get(os.Stat(filepath.Join(p.logs, "precious")))(t)
	assert.Zero(t, info.Size())

	pid = p.start(`
import clusterrun, os, time
os.closerange(3, 2000)
f = open(os.environ["HOME"] + "/precious", "w")
assert clusterrun.enable_stacks()
f.write("as it should be"); f.flush()
print("ready", flush=True)
time.sleep(1000)
`)
	assert.Contains(t, p.capture(pid), "by its own account\n")
	assert.Equal(t, "as it should be", must.Read(t, p.logs, "precious"))
}

func TestDisabled(t *testing.T) {
	p := newInterpreter(t)
	pid := p.start(`
import clusterrun, time
clusterrun.disable_stacks()
clusterrun.disable_stacks()
print("ready", flush=True)
time.sleep(1000)
`)
	assert.NotContains(t, p.capture(pid), "by its own account")
	require.NoError(t, syscall.Kill(pid, 0))
}

// TE-72, TE-73: the import sets up the handler once, and never fails.
func TestSetUpNeverFails(t *testing.T) {
	p := newInterpreter(t)
	const state = `
import clusterrun
print(clusterrun.enable_stacks())
`
	assert.Equal(t, "True\n", p.output(state))
	for name, env := range map[string]string{
		"no signal":             "CLUSTERRUN_STACK_SIGNAL=",
		"no number":             "CLUSTERRUN_STACK_SIGNAL=SIGUSR1",
		"a signal of no use":    "CLUSTERRUN_STACK_SIGNAL=9",
		"a number of no signal": "CLUSTERRUN_STACK_SIGNAL=4000",
		"a fatal signal":        "CLUSTERRUN_STACK_SIGNAL=11",
	} {
		assert.Equal(t, "False\n", p.output(state, env), name)
	}
	assert.Equal(t, "False\n", p.output("import sys; sys.modules['faulthandler'] = None"+state), "without faulthandler")
	assert.Equal(t, "False\n", p.output("import os; del os.environ['CLUSTERRUN_STACK_SIGNAL']"+state), "outside of a task")
	assert.Equal(t, "True\n", p.output(`
import threading
def elsewhere():
    import clusterrun
    print(clusterrun.enable_stacks())
t = threading.Thread(target=elsewhere); t.start(); t.join()`), "not in the main thread")
	assert.Equal(t, "1\n", p.output(`
import clusterrun, os
assert clusterrun.enable_stacks() and clusterrun.enable_stacks()
print(sum("memfd:" in os.readlink("/proc/self/fd/" + fd) for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd)))`), "one descriptor")
}

func TestThePackageWorksWithOldAndNewPythons(t *testing.T) {
	for version, program := range interpreters(t, "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14") {
		p := newInterpreter(t)
		p.program = program
		assert.Equal(t, "True\n", p.output("import clusterrun; print(clusterrun.enable_stacks())"), version)
	}
}

// PYTHONFAULTHANDLER, which tasks have in addition, prints the lines of a crash, which still kills
// the program with its signal. The hook still answers.
func TestACrashHasItsLines(t *testing.T) {
	p := newHooked(t)
	cmd := p.command(`
import ctypes
def crashes_here():
    ctypes.string_at(0)
crashes_here()
`)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	cmd.Env = append(cmd.Env, "PYTHONFAULTHANDLER=1")
	var ended *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &ended)
	assert.Equal(t, syscall.SIGSEGV, ended.Sys().(syscall.WaitStatus).Signal())
	assert.Contains(t, errs.String(), "Fatal Python error: Segmentation fault")
	assert.Contains(t, errs.String(), "in crashes_here")

	pid := p.start(`
import faulthandler, time
assert faulthandler.is_enabled()
def waits_here():
    print("ready", flush=True)
    time.sleep(1000)
waits_here()
`, "PYTHONFAULTHANDLER=1")
	p.captureUntil(pid, func(text string) bool { return strings.Contains(text, "in waits_here") })
}
