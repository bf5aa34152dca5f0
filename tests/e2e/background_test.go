package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// backgroundWorker returns the process of the host worker of the state directory, or 0 if there
// is none.
func (l *local) backgroundWorker() int { return supervisor.Holder(filepath.Join(l.state(), "worker")) }

// endBackgroundWorker ends the host worker that a submit may have started.
func (l *local) endBackgroundWorker() {
	if l.backgroundWorker() == 0 {
		return
	}
	code, _, stderr := l.run("worker", "stop", "--force")
	assert.Zero(l.t, code, stderr)
}

func (l *local) ended(pid int) {
	l.t.Helper()
	harness.Eventually(l.t, fmt.Sprintf("process %d has ended", pid), func() bool { s := harness.State(pid); return s == "" || s == "Z" })
}

// On a laptop submit is enough: it starts a host worker that serves the run.
func TestSubmitAlone(t *testing.T) {
	t.Parallel()
	l := newLocal(t)

	// Two commands at the same time start one host worker.
	first, second := l.start("submit", "--id", "first", "-n", "2", "--", "pwd"), l.start("submit", "--id", "second", "--", "true")
	require.Zero(t, first.ExitCode(), first.Stderr())
	require.Zero(t, second.ExitCode(), second.Stderr())
	assert.Equal(t, "first\n", first.Stdout())
	assert.Equal(t, "second\n", second.Stdout())
	worker := l.backgroundWorker()
	require.NotZero(t, worker)
	said := first.Stderr() + second.Stderr()
	started := fmt.Sprintf("started a host worker in the background (process %d); it ends after 10m without runs, or by `clusterrun worker stop`", worker)
	assert.Equal(t, 1, strings.Count(said, started), said)
	// It does not depend on the shell that happened to start it.
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", worker))
	require.NoError(t, err)
	assert.Equal(t, l.home, cwd)
	for _, id := range []string{"first", "second"} {
		code, _, stderr := l.run("wait", id)
		assert.Zero(t, code, stderr)
	}
	code, stdout, stderr := l.run("logs", "first")
	require.Zero(t, code, stderr)
	assert.Equal(t, 2, strings.Count(stdout, l.home+"\n"), "the processes run in the directory of submit: %s", stdout)

	// While it has tasks, `worker stop` does not end it.
	code, _, stderr = l.run(append([]string{"submit", "--id", "third", "--auto-restart", "--env", l.mark}, untilGo(l)...)...)
	require.Zero(t, code, stderr)
	assert.NotContains(t, stderr, "started a host worker")
	harness.Eventually(t, "its process runs", func() bool { return len(l.tasks()) > 0 })
	code, _, stderr = l.run("worker", "stop")
	assert.Equal(t, 125, code)
	assert.Contains(t, stderr, "has tasks of 1 run (third)")
	assert.Equal(t, worker, l.backgroundWorker())

	// It is killed, and the next one continues its run.
	require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
	l.ended(worker)
	code, _, stderr = l.run("submit", "--id", "fourth", "--", "true")
	require.Zero(t, code, stderr)
	next := l.backgroundWorker()
	require.NotZero(t, next)
	assert.NotEqual(t, worker, next)
	assert.Contains(t, stderr, fmt.Sprintf("started a host worker in the background (process %d) to replace process %d, which was killed", next, worker))
	l.goOn()
	for _, id := range []string{"third", "fourth"} {
		code, _, stderr := l.run("wait", id)
		assert.Zero(t, code, stderr)
	}

	harness.Eventually(t, "it has given the runs back", func() bool { code, _, _ := l.run("worker", "stop"); return code == 0 })
	assert.Zero(t, l.backgroundWorker())
	l.ended(next)
	code, _, stderr = l.run("worker", "stop")
	assert.Zero(t, code, stderr)
	assert.Contains(t, stderr, "no host worker uses")

	// One that has ended as asked was not killed.
	code, _, stderr = l.run("submit", "--id", "fifth", "--", "true")
	require.Zero(t, code, stderr)
	assert.Contains(t, stderr, "started a host worker")
	assert.NotContains(t, stderr, "killed")
	code, _, stderr = l.run("wait", "fifth")
	assert.Zero(t, code, stderr)
}

// Submit starts no host worker for another queue, or within a task.
func TestSubmitForOthersStartsNothing(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, _, stderr := l.run("submit", "--queue", "others", "--", "true")
	require.Zero(t, code, stderr)
	assert.Contains(t, stderr, "no worker serves the queue others")
	code, _, stderr = l.run("host", "list", "--queue", "others")
	assert.Equal(t, 125, code)
	assert.Equal(t, "clusterrun: no worker serves the queue others; start `clusterrun worker` (not with --role host) or `clusterrun dev`\n", stderr)
	code, stdout, stderr := l.run("run", "-n", "1", "--", harness.Clusterrun(t), "submit", "--id", "nested", "--", "true")
	require.Zero(t, code, stdout+stderr)
	assert.Contains(t, stdout+stderr, "no worker serves the queue clusterrun")
	assert.Zero(t, l.backgroundWorker())
}

// A host worker in the background ends by itself only after it has had no runs for long enough.
// If submit started it, it makes way for one in the foreground.
func TestAHostWorkerInTheBackground(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, stdout, stderr := l.run("worker", "--detach", "--idle-exit", "2s", "--json")
	require.Zero(t, code, stderr)
	var worker struct{ PID int }
	require.NoError(t, json.Unmarshal([]byte(stdout), &worker))
	require.Equal(t, worker.PID, l.backgroundWorker())
	l.ended(worker.PID)
	assert.NoFileExists(t, filepath.Join(l.state(), "worker", "background.json"))
	log, err := os.ReadFile(filepath.Join(l.state(), "worker.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "this host worker was idle for too long, and exits")

	code, _, stderr = l.run("submit", "--id", "run", "--", "true")
	require.Zero(t, code, stderr)
	onDemand := l.backgroundWorker()
	require.NotZero(t, onDemand)
	code, _, stderr = l.run("worker", "--detach")
	require.Zero(t, code, stderr)
	code, _, stderr = l.run("wait", "run")
	require.Zero(t, code, stderr)
	harness.Eventually(t, "it has made way", func() bool {
		code, _, stderr = l.run("worker", "--detach")
		require.Zero(t, code, stderr)
		return l.backgroundWorker() != onDemand
	})
	last := l.backgroundWorker()
	code, _, stderr = l.run("worker", "--detach")
	require.Zero(t, code, stderr)
	assert.Contains(t, stderr, fmt.Sprintf("runs already, as process %d", last))
	code, _, stderr = l.run("worker", "upgrade")
	require.Zero(t, code, stderr)
	assert.Equal(t, last, l.backgroundWorker())
}

// A host worker without runs does not end while an open run has no host yet, since no other
// would continue it.
func TestAHostWorkerStaysForRunsThatWait(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, _, stderr := l.run("submit", "--id", "waits", "--queue", "others", "--placement-timeout", "10s", "--task", "worker=absent:2222", "--", "true")
	require.Zero(t, code, stderr)
	code, stdout, stderr := l.run("worker", "--detach", "--queue", "others", "--idle-exit", "4s", "--json")
	require.Zero(t, code, stderr)
	var worker struct{ PID int }
	require.NoError(t, json.Unmarshal([]byte(stdout), &worker))

	code, _, stderr = l.run("wait", "waits")
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "absent", "the time for hosts passes only where somebody serves the run")
	l.ended(worker.PID)
	assert.Zero(t, l.backgroundWorker())
}

// Two host workers with the same name would share the tasks that are pinned to it. The second
// is refused for as long as the first is alive.
func TestTheSecondHostWorkerOfANameIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	code, _, stderr := f.CLI(t, "worker", "--state-dir", t.TempDir(), "--host-name", f.worker.Host)
	assert.Equal(t, 125, code)
	assert.Contains(t, stderr, ") already serves queue clusterrun as host host-a")
	assert.Contains(t, stderr, "--host-name")

	f.worker.Kill(syscall.SIGKILL)
	f.worker.ExitCode()
	harness.Eventually(t, "its side is gone", func() bool { return len(harness.Alive(f.worker.State)) == 0 })
	f.worker = f.StartWorker(t)
	r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, "true")}}))
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
}

// A host worker is started, reloaded and stopped as its unit says. It notifies systemd that it
// is ready once its fleet has it, and again after an upgrade in place, in the same process; and
// that it stops.
func TestSystemdHearsOfAHostWorker(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t)
	socket := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	defer l.Close()
	next := func() string {
		t.Helper()
		require.NoError(t, l.SetReadDeadline(time.Now().Add(time.Minute)))
		message := make([]byte, 1000)
		n, err := l.Read(message)
		require.NoError(t, err)
		return string(message[:n])
	}

	code, unit, stderr := s.CLI(t, "worker", "install", "--user", "--dry-run", "--address", s.Address, "--state-dir", filepath.Join(t.TempDir(), "state"),
		"--host-name", "host-a", "--slots", "2", "--label", "rack=r7", "--advertise", "127.0.0.1")
	require.Zero(t, code, stderr)
	// A shell takes these words as systemd does.
	call := func(key string) *harness.Process {
		t.Helper()
		_, rest, found := strings.Cut(unit, "\n"+key+"=")
		require.True(t, found, unit)
		line, _, _ := strings.Cut(rest, "\n")
		return harness.Start(t, t.TempDir(), harness.Env(t.TempDir(), "NOTIFY_SOCKET="+socket), "bash", "-c", "exec "+line)
	}

	w := call("ExecStart")
	require.Equal(t, "READY=1", next())
	code, out, stderr := s.CLI(t, "host", "list")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, "host-a", "it is registered by then")
	assert.Contains(t, out, "rack=r7")

	reload := call("ExecReload")
	require.Zero(t, reload.ExitCode(), reload.Stderr())
	require.Equal(t, "READY=1", next())
	assert.False(t, w.Exited(), "it is the same process")

	stop := call("ExecStop")
	require.Equal(t, "STOPPING=1", next())
	require.Zero(t, w.ExitCode(), w.Stderr())
	require.Zero(t, stop.ExitCode(), stop.Stderr())
}

// probed returns a host worker's answer to a probe. The code is 0 if there is no answer.
func probed(address string) (int, string) {
	r, err := http.Get("http://" + address + "/ready")
	if err != nil {
		return 0, ""
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return r.StatusCode, strings.TrimSpace(string(text))
}

// Probes of host workers and controllers succeed when they serve, but not before there is a
// server.
func TestReadyIsServed(t *testing.T) {
	t.Parallel()
	host, controller := harness.FreeAddress(t), harness.FreeAddress(t)
	awaits := func(address string, status int) {
		t.Helper()
		harness.Eventually(t, http.StatusText(status)+" at "+address, func() bool {
			got, _ := probed(address)
			return got == status
		})
	}
	s := harness.StartServer(t, "--headless")
	s.Kill()
	start := func(role, address string) *harness.Process {
		return harness.Start(t, t.TempDir(), harness.Env(t.TempDir(), "TEMPORAL_ADDRESS="+s.Address), harness.Clusterrun(t),
			"worker", "--role", role, "--metrics", address)
	}
	for role, address := range map[string]string{"host": host, "controller": controller} {
		p := start(role, address)
		defer func() {
			p.Kill(syscall.SIGTERM)
			p.ExitCode()
		}()
		awaits(address, http.StatusServiceUnavailable)
	}
	_, text := probed(host)
	assert.Equal(t, "not ready: the queues of this host worker are not served", text)

	s.Restart()
	awaits(controller, http.StatusOK)
	awaits(host, http.StatusOK)
	_, text = probed(host)
	assert.Equal(t, "ready", text)
}
