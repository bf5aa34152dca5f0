package taskapi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
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
	b, err := os.ReadFile(filepath.Join(h.logs, "0", "0", tasklog.ResultFile))
	require.NoError(t, err)
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
		b, err := os.ReadFile(file)
		require.NoError(t, err)
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
		r, err := tasklog.ReadErrorFile(file)
		require.NoError(t, err)
		require.NotNil(t, r)
		assert.Equal(t, "ValueError: x is 3, ?", r.Message)
		assert.Contains(t, r.Callstack, "in train\n")
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		var m map[string]map[string]any
		require.NoError(t, json.Unmarshal(b, &m))
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
	r, err := tasklog.ReadErrorFile(file)
	require.NoError(t, err)
	assert.Len(t, r.Message, 64<<10, "cut, not lost")
}

func TestPythonMain(t *testing.T) {
	p, h := newPython(t), newHost(t, 1)
	result := filepath.Join(h.logs, "0", "0", tasklog.ResultFile)
	p.run(h, 0, "import clusterrun\nclusterrun.main(lambda a, b=0: None, 1, b=2)")
	assert.NoFileExists(t, result)
	p.run(h, 0, "import clusterrun\nclusterrun.main(lambda a, b=0: {'sum': a + b}, 1, b=2)")
	b, err := os.ReadFile(result)
	require.NoError(t, err)
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
		r, err := h.task(1).Barrier(testContext(t), "x")
		require.NoError(t, err)
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
