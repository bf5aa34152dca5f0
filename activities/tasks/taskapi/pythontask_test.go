package taskapi

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	pythonsdk "github.com/clusterrun/clusterrun/activities/tasks/python"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/memoryqueue"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/taskmetrics"
)

// pythonFile returns a program in testdata/python.
func pythonFile(t *testing.T, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join("testdata/python", name+".py")))(t))
}

// run runs a program as a task and returns its output.
func (p *python) run(h *host, i int, source string, env ...string) string {
	p.t.Helper()
	return p.output(source, append([]string{
		SocketVar + "=" + h.paths[i],
		"CLUSTERRUN_ERROR_FILE=" + filepath.Join(h.logs, "0", "0", tasklog.ErrorFile),
		"CLUSTERRUN_RESTART_COUNT=2",
	}, env...)...)
}

// MPR-12: outside a task, get_barrier fails, and everything else works as in a run with one task.
func TestPythonOutsideATask_MPR12_SEED28(t *testing.T) {
	p := newPython(t)
	assert.Equal(t, "barrier is not defined. It is likely because you are calling get_barrier() in the main process. get_barrier() can only be called in the subprocesses.\n", p.output(pythonFile(t, "outside_a_task")))
}

func TestPythonTask(t *testing.T) {
	p, h := newPython(t), newHost(t, 1)
	out := p.run(h, 0, pythonFile(t, "task"))
	assert.Equal(t, strings.TrimSpace(`
too_large  the result exceeds the limit of 262144 bytes for results that are sent: write it to the file that CLUSTERRUN_RESULT_FILE names
too_large  the result exceeds the limit of 262144 bytes for results that are sent: write it to the file that CLUSTERRUN_RESULT_FILE names
invalid participants[0] field participants[0]: the cluster has no task and no type "nobody"; it has worker-0, ps-0
a barrier's name must have 1 to 200 bytes, not 10485760
a barrier's name must have 1 to 200 bytes, not 0`), strings.TrimSpace(out))
	assert.Equal(t, &Progress{Current: 10000, Total: 10000, Message: "loss 0.1"}, h.Progress(h.ids[0]))
	b := must.Get(os.ReadFile(filepath.Join(h.logs, "0", "0", tasklog.ResultFile)))(t)
	assert.JSONEq(t, `{"ü": [null, 1.5]}`, string(b))
}

// A program that completed its work does not fail because of what it returns or reports.
func TestPythonResultsOfAllKinds(t *testing.T) {
	p, h := newPython(t), newHost(t, 1)
	file := filepath.Join(h.logs, "0", "0", tasklog.ResultFile)
	assert.Equal(t, "clusterrun: the result: when is a date; JSON cannot represent it, so it is stored as text\n", p.run(h, 0, `
import clusterrun, datetime, os, sys
os.dup2(1, 2)
clusterrun.main(lambda: {"loss": float("nan"), "epochs": 10, "when": datetime.date(2024, 2, 29)})
clusterrun.progress(float("nan"), 10, "loss nan")
`))
	assert.Equal(t, &Progress{Total: 10, Message: "loss nan"}, h.Progress(h.ids[0]))
	p.run(h, 0, `
import clusterrun
clusterrun.progress(10, 10, loss=0.5, accuracy=float("nan"))
`)
	metrics := map[string]float64{"loss": 0.5}
	assert.Equal(t, &Progress{Current: 10, Total: 10, Metrics: metrics}, h.Progress(h.ids[0]))
	if reports := h.Reports(h.ids[0]); assert.Len(t, reports, 1) {
		assert.Equal(t, taskmetrics.Report{At: reports[0].At, Step: 10, Metrics: metrics}, reports[0])
	}
	for _, body := range []string{`{"current": 1, "metrics": {"a b": 1}}`, `{"current": 1, "metrics": {"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}}`} {
		assert.Equal(t, "metrics", h.refused(400, wire.CodeInvalid, http.MethodPut, wire.PathProgress, body).Field)
	}
	kept := func() string {
		b := must.Get(os.ReadFile(file))(t)
		return string(b)
	}
	assert.JSONEq(t, `{"loss": {"$clusterrun.number": "NaN"}, "epochs": 10, "when": "2024-02-29"}`, kept())

	// If the host cannot be asked, the program writes what the host would have written.
	p.output(`
import clusterrun
clusterrun._transport.ask.__defaults__ = ("", 0.01)
clusterrun.main(lambda: 7)
`, SocketVar+"=/nowhere", "CLUSTERRUN_RESULT_FILE="+file)
	assert.Equal(t, "7", kept())
	assert.Contains(t, p.output(`
import clusterrun, os
os.dup2(1, 2)
clusterrun._transport.ask.__defaults__ = ("", 0.01)
clusterrun.main(lambda: 8)
`, SocketVar+"=/nowhere"), "clusterrun: the result is lost: the host does not answer")
	assert.Equal(t, "7", kept())
}

func TestPythonBarrierBreaks(t *testing.T) {
	p, h := newPython(t), newHost(t, 2)
	assert.Equal(t, "['worker-1'] ['worker-0'] True True\n", p.run(h, 0, `
import clusterrun, threading
try:
    clusterrun.get_barrier("x").wait(timeout=0.05)
except clusterrun.BarrierTimeoutError as e:
    print(e.missing, e.arrived, isinstance(e, threading.BrokenBarrierError), isinstance(e, TimeoutError))
`))
	h.Ended(h.ids[1], true, "exited with exit code 7")
	assert.Contains(t, p.run(h, 0, pythonFile(t, "barrier_breaks")), "worker-1 exited with exit code 7 and does not come back")
}

// Threads and forked children send requests concurrently.
func TestPythonThreadsAndForks(t *testing.T) {
	p, h := newPython(t), newHost(t, 2)
	told := h.arrive(testContext(t), 1, "all")
	h.awaitArrived("all", 1)
	assert.Equal(t, "child 0\nparent 8\n", p.run(h, 0, pythonFile(t, "threads_and_forks")))
	require.NoError(t, (<-told).err)
}

// The error is in its file, in torch's form, whether or not the host is up.
func TestPythonErrors(t *testing.T) {
	p, h := newPython(t), newHost(t, 1)
	file := filepath.Join(h.logs, "0", "0", tasklog.ErrorFile)
	program := pythonFile(t, "errors")
	for _, socket := range []string{h.paths[0], filepath.Join(t.TempDir(), "nobody")} {
		assert.Equal(t, "raised\n", p.run(h, 0, program, SocketVar+"="+socket))
		r := must.Get(tasklog.ReadErrorFile(file))(t)
		require.NotNil(t, r)
		assert.Equal(t, "ValueError: x is 3, ?", r.Message)
		assert.Contains(t, r.Callstack, "in train\n")
		b := must.Get(os.ReadFile(file))(t)
		m := must.JSON[map[string]map[string]any](t, b)
		info, ok := m["message"]["extraInfo"].(map[string]any)
		require.True(t, ok)
		assert.Regexp(t, `^\d+$`, info["timestamp"])
		require.NoError(t, os.Remove(file))
	}

	assert.Equal(t, "", p.run(h, 0, `
import clusterrun
clusterrun.error("no disk", kind="IOError")
clusterrun.error("x" * (5 << 20))
`))
	r := must.Get(tasklog.ReadErrorFile(file))(t)
	assert.Len(t, r.Message, 64<<10, "cut, not lost")
}

func TestPythonMain(t *testing.T) {
	p, h := newPython(t), newHost(t, 1)
	result := filepath.Join(h.logs, "0", "0", tasklog.ResultFile)
	p.run(h, 0, "import clusterrun\nclusterrun.main(lambda a, b=0: None, 1, b=2)")
	assert.NoFileExists(t, result)
	p.run(h, 0, "import clusterrun\nclusterrun.main(lambda a, b=0: {'sum': a + b}, 1, b=2)")
	b := must.Get(os.ReadFile(result))(t)
	assert.JSONEq(t, `{"sum": 3}`, string(b))
}

// The server restarts while a Python task waits.
func TestPythonAcrossServers(t *testing.T) {
	p, h := newPython(t), newHost(t, 2)
	out := make(chan string, 1)
	go func() {
		out <- p.run(h, 0, `
import clusterrun
b = clusterrun.get_barrier("x", timeout=60)
print(b.wait(), b.wait())`)
	}()
	h.awaitArrived("x", 1)
	require.NoError(t, h.Close())
	h.start()
	for round := 1; round <= 2; round++ {
		r := must.Get(h.task(1).Barrier(testContext(t), "x"))(t)
		assert.Equal(t, task.Release{Round: round, Index: 1, Parties: 2}, r)
	}
	assert.Equal(t, "0 0\n", <-out)
}

// A program may close all its descriptors, as daemons do, and continue.
func TestPythonWithoutDescriptors(t *testing.T) {
	p, h := newPython(t), newHost(t, 1)
	out := p.run(h, 0, pythonFile(t, "without_descriptors"))
	assert.Equal(t, "done\n", out)
}

// python is an interpreter with the package clusterrun.
type python struct {
	t       *testing.T
	program string
	path    string
}

func newPython(t *testing.T) *python {
	t.Helper()
	program, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	path := must.Get(pythonsdk.Install(t.TempDir(), ""))(t)
	return &python{t, program, path}
}

func (p *python) command(source string) *exec.Cmd {
	cmd := exec.Command(p.program, "-c", source)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.t.TempDir(), "PYTHONPATH=" + p.path, "PYTHONDONTWRITEBYTECODE=1",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stderr = os.Stderr
	return cmd
}

func (p *python) output(source string, env ...string) string {
	p.t.Helper()
	cmd := p.command(source)
	cmd.Env = append(cmd.Env, env...)
	out := must.Get(cmd.Output())(p.t)
	return string(out)
}

// Resources are released once they are unreferenced, but not before the closures that use them are
// in the queue.
func TestPythonReleasesResources_CC29(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, 0, map[string]memoryqueue.Function{"same": same, "load": same})
	program := p.background(h.host, 0, coordinates+pythonFile(t, "releases_resources"))
	program.says("one is left")
	known, built := h.queue.Resources()
	assert.Equal(t, []int{1, 1}, []int{known, built})
	assert.Equal(t, 1+20, h.queue.Called("load"))
	program.goOn()
	program.ends()
}
