package taskapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	pythonsdk "github.com/clusterrun/clusterrun/activities/tasks/python"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// run runs a program as a task and returns what it printed.
func (p *python) run(h *host, i int, source string, env ...string) string {
	p.t.Helper()
	return p.output(source, append([]string{
		SocketVar + "=" + h.paths[i],
		"CLUSTERRUN_ERROR_FILE=" + filepath.Join(h.logs, "0", "0", tasklog.ErrorFile),
		"CLUSTERRUN_RESTART_COUNT=2",
	}, env...)...)
}

// MPR-12, SEED-28: outside a task get_barrier fails, and everything else works as in a run of
// one task.
func TestPythonOutsideATask_MPR12_SEED28(t *testing.T) {
	p := newPython(t)
	assert.Equal(t, "barrier is not defined. It is likely because you are calling get_barrier() in the main process. get_barrier() can only be called in the subprocesses.\n", p.output(`
import clusterrun
try:
    clusterrun.get_barrier()
except ValueError as e:
    print(str(e).split(" (CLUSTERRUN")[0])
for call in (lambda: clusterrun.result(1), lambda: clusterrun.progress(1, float("nan")), lambda: clusterrun.error("x")):
    assert call() is None
assert clusterrun.barrier("loaded", timeout=1, participants=["ps"]) == 0
info = clusterrun.info()
assert (info["rank"], info["world_size"], info["local_rank"], info["local_world_size"]) == (0, 1, 0, 1)
assert [m["rank"] for m in clusterrun.cluster()] == [0]
assert clusterrun.main(lambda: {7}) == {7}
assert clusterrun.restart_count() == 0
@clusterrun.record
def fails():
    raise KeyError("x")
try:
    fails()
except KeyError:
    pass
`))
}

func TestPythonTask(t *testing.T) {
	p, h := newPython(t), newHost(t, 1)
	out := p.run(h, 0, `
import clusterrun
assert clusterrun.restart_count() == 2
assert clusterrun.info()["task"] == "worker-0"
assert [m["task"] for m in clusterrun.cluster()] == ["worker-0", "ps-0"]
assert clusterrun.get_barrier().wait() == 0
assert clusterrun.barrier("ü/..", timeout=30, participants=["worker"], local=True) == 0
for i in range(10001):
    clusterrun.progress(i, 10000, "loss 0.1")
clusterrun.result({"ü": [None, 1.5]})
for call in (lambda: clusterrun.result("x" * (256 << 10)), lambda: clusterrun.result("x" * (8 << 20)),
             lambda: clusterrun.barrier("x", participants=["nobody"])):
    try:
        call()
    except clusterrun.TaskError as e:
        print(e.code, e.field, e)
for call in (lambda: clusterrun.barrier("x" * (10 << 20)), lambda: clusterrun.barrier("")):
    try:
        call()
    except ValueError as e:
        print(e)
`)
	assert.Equal(t, strings.TrimSpace(`
too_large  the result has more than 262144 bytes, the limit of a result that is sent: write it to the file that CLUSTERRUN_RESULT_FILE names
too_large  the result has more than 262144 bytes, the limit of a result that is sent: write it to the file that CLUSTERRUN_RESULT_FILE names
invalid participants[0] field participants[0]: the cluster has no task and no type "nobody"; it has worker-0, ps-0
the name of a barrier has 1 to 200 bytes, not 10485760
the name of a barrier has 1 to 200 bytes, not 0`), strings.TrimSpace(out))
	assert.Equal(t, &Progress{Current: 10000, Total: 10000, Message: "loss 0.1"}, h.Progress(h.ids[0]))
	b := must.Get(os.ReadFile(filepath.Join(h.logs, "0", "0", tasklog.ResultFile)))(t)
	assert.JSONEq(t, `{"ü": [null, 1.5]}`, string(b))
}

// A program that has done its work does not fail because of what it returns or reports.
func TestPythonResultsOfAllKinds(t *testing.T) {
	p, h := newPython(t), newHost(t, 1)
	file := filepath.Join(h.logs, "0", "0", tasklog.ResultFile)
	assert.Equal(t, "clusterrun: the result: when is a date; JSON has no word for that, so its text is kept\n", p.run(h, 0, `
import clusterrun, datetime, os, sys
os.dup2(1, 2)
clusterrun.main(lambda: {"loss": float("nan"), "epochs": 10, "when": datetime.date(2024, 2, 29)})
clusterrun.progress(float("nan"), 10, "loss nan")
`))
	assert.Equal(t, &Progress{Total: 10, Message: "loss nan"}, h.Progress(h.ids[0]))
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
	assert.Contains(t, p.run(h, 0, `
import clusterrun
try:
    clusterrun.barrier("x")
except clusterrun.BarrierTimeoutError:
    print("wrong")
except clusterrun.BrokenBarrierError as e:
    print(e)
`), "worker-1 exited with exit code 7 and does not come back")
}

// Threads and forked children send requests side by side.
func TestPythonThreadsAndForks(t *testing.T) {
	p, h := newPython(t), newHost(t, 2)
	told := h.arrive(testContext(t), 1, "all")
	h.awaitArrived("all", 1)
	assert.Equal(t, "child 0\nparent 8\n", p.run(h, 0, `
import clusterrun, os, threading
clusterrun.info()  # a connection that a child must not use
done = []
def ask():
    for _ in range(50):
        assert clusterrun.info()["task"] == "worker-0"
    done.append(1)
threads = [threading.Thread(target=ask) for _ in range(8)]
for t in threads: t.start()
pid = os.fork()
if pid == 0:
    print("child", clusterrun.barrier("all"), flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
for t in threads: t.join()
print("parent", len(done))
`))
	require.NoError(t, (<-told).err)
}

// The error is in its file, in the form torch writes it, whether or not the host is there.
func TestPythonErrors(t *testing.T) {
	p, h := newPython(t), newHost(t, 1)
	file := filepath.Join(h.logs, "0", "0", tasklog.ErrorFile)
	const program = `
import clusterrun, sys
@clusterrun.record
def train(x):
    raise ValueError("x is %s, \udcff" % x)
try:
    train(3)
except ValueError:
    print("raised")
`
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

// The server is restarted while a Python task waits.
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
	out := p.run(h, 0, `
import clusterrun, os
for _ in range(3):
    clusterrun.barrier("x", local=True)
    clusterrun.info()
    os.closerange(3, 1000)
    clusterrun.result(1)
    os.closerange(3, 1000)
print("done")
`)
	assert.Equal(t, "done\n", out)
}

// python is an interpreter that finds the package clusterrun.
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

// CC-29, SEED-45: resources are released once nothing refers to them, and no earlier than the
// closures that use them are in the queue.
func TestPythonReleasesResources_CC29(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"same": same, "load": same})
	program := p.background(h.host, 0, coordinates+`
import copy, gc, pickle
def steps(*names):
    for name in names:
        print(name, flush=True)
        sys.stdin.readline()
dataset = c.create_per_worker_dataset("load", args=(8,))
kept = c.create_per_worker_resource("load", args=(7,))
copies = [copy.copy(kept), copy.deepcopy([kept])[0]]
assert copies[0] is kept and copies[1] is kept
named = pickle.loads(pickle.dumps(kept))
assert type(named) is clusterrun.PerWorkerValues and c.schedule("same", (named,)).fetch() == 7
del named
assert type(pickle.loads(pickle.dumps(iter(dataset)))) is type(iter(dataset))
for i in range(200):
    it = iter(dataset)
    assert c.schedule("same", (it,)).fetch() == 8
steps("one of 200 is left")
del it
steps("none is left")
it = iter(dataset)
steps("away")
values = [c.schedule("same", (it,)) for i in range(10)]
del it
steps("unsent")
assert c.fetch(values) == [8] * 10
steps("gone")
named = pickle.loads(pickle.dumps(kept))
del kept, copies
steps("released")
value = c.schedule("same", (named,))
text = raised(value.fetch, clusterrun.ClosureError)
assert text.startswith("RefusedError: resources: resource 1 was released by the client that created it"), text
assert raised(c.join, clusterrun.ClosureError) == text
more = [iter(dataset) for i in range(20)]
assert c.fetch([c.schedule("same", (it,)) for it in more]) == [8] * 20
print("ends")
`)
	left := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return h.queue.Counts().Resource == n && len(h.queue.Built()) == n }, time.Minute, time.Millisecond,
			"%d are known and %v built", h.queue.Counts().Resource, h.queue.Built())
		program.goOn()
	}
	program.says("one of 200 is left")
	left(2)
	assert.Less(t, h.queue.Updates(closure.UpdateReleaseResources), 200+2, "some go together, and none twice")
	program.says("none is left")
	left(1)
	program.says("away")
	h.queue.Away(true)
	program.goOn()
	program.says("unsent")
	h.queue.Away(false)
	program.goOn()
	program.says("gone")
	left(1)
	program.says("released")
	left(0)
	assert.Equal(t, "ends\n", program.ends())
	assert.Zero(t, h.queue.Counts().Resource, "the end of the program releases the others")
	assert.Empty(t, h.queue.Built())
}

// A coordinator that nothing refers to releases its resources before it ends. A forked child
// releases none.
func TestPythonCoordinatorsReleaseAtTheirEnd(t *testing.T) {
	p, h := newPython(t), newCoordinated(t, map[string]queues.Function{"same": same, "load": same})
	program := p.background(h.host, 0, strings.Replace(coordinates, "c = ", "", 1)+`
import gc
def threads():
    return [t for t in threading.enumerate() if t.name in ("clusterrun-schedule", "clusterrun-outcomes")]
values = clusterrun.ClusterCoordinator().create_per_worker_resource("load", args=(7,))
assert clusterrun.ClusterCoordinator() is values._coordinator, "they keep it"
pid = os.fork()
if pid == 0:
    del values
    gc.collect()
    sys.exit()
assert os.waitpid(pid, 0)[1] == 0
assert clusterrun.ClusterCoordinator().schedule("same", (values,)).fetch() == 7
ending = threads()
assert len(ending) == 2
del values
gc.collect()
for t in ending: t.join(60)
assert not threads(), threads()
print("ended", flush=True)
sys.stdin.readline()
`)
	program.says("ended")
	assert.Zero(t, h.queue.Counts().Resource)
	assert.Equal(t, 1, h.queue.Updates(closure.UpdateReleaseResources))
	program.goOn()
	program.ends()
}
