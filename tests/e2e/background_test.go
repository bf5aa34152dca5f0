package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// backgroundWorker returns the state directory's host worker process, or 0.
func (l *local) backgroundWorker() int { return supervisor.Holder(filepath.Join(l.state(), "worker")) }

// endBackgroundWorker stops the host worker that a submit may have started.
func (l *local) endBackgroundWorker() {
	if l.backgroundWorker() == 0 {
		return
	}
	l.ok("worker", "stop", "--force")
}

func (l *local) ended(pid int) {
	l.t.Helper()
	harness.Eventually(l.t, fmt.Sprintf("process %d has exited", pid), func() bool { s := harness.State(pid); return s == "" || s == "Z" })
}

// On a laptop, submit is enough: it starts a host worker for the run. In a task it does not, in any
// environment that the task gives it, because the host worker would exit with the task, and take
// other users' runs along.
func TestSubmitAlone(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	for name, wrapped := range map[string][]string{"plain": nil, "clean": {"env", "-i"}, "session": {"env", "-i", "setsid", "-w"}} {
		command := slices.Concat([]string{"run", "-n", "1", "--"}, wrapped, []string{"env", "HOME=" + l.home, "PATH=" + os.Getenv("PATH"),
			"CLUSTERRUN_DEVSERVER=" + harness.Devserver(t), harness.Clusterrun(t), "submit", "--id", name, "--", "true"})
		assert.Contains(t, l.ok(command...), name)
		assert.Zero(t, l.backgroundWorker(), name)
	}

	// Two simultaneous commands start one host worker.
	first, second := l.start("submit", "--id", "first", "-n", "2", "--", "pwd"), l.start("submit", "--id", "second", "--", "true")
	require.Zero(t, first.ExitCode(), first.Stderr())
	require.Zero(t, second.ExitCode(), second.Stderr())
	assert.Equal(t, "first\n", first.Stdout())
	assert.Equal(t, "second\n", second.Stdout())
	worker := l.backgroundWorker()
	require.NotZero(t, worker)
	said := first.Stderr() + second.Stderr()
	started := fmt.Sprintf("started a host worker in the background (process %d); it exits after 5m without runs; `clusterrun worker stop` stops it", worker)
	assert.Equal(t, 1, strings.Count(said, started), said)
	// It does not depend on the shell that started it.
	cwd := must.Get(os.Readlink(fmt.Sprintf("/proc/%d/cwd", worker)))(t)
	assert.Equal(t, l.home, cwd)
	for _, id := range []string{"first", "second"} {
		l.ok("wait", id)
	}
	stdout := l.ok("logs", "first")
	assert.Equal(t, 2, strings.Count(stdout, l.home+"\n"), "the processes run in the directory of submit: %s", stdout)

	// While it has tasks, `worker stop` does not stop it.
	_, stderr := l.succeeds(append([]string{"submit", "--id", "third", "--auto-restart", "--env", l.mark}, untilGo(l)...)...)
	assert.NotContains(t, stderr, "started a host worker")
	harness.Eventually(t, "its process runs", func() bool { return len(l.tasks()) > 0 })
	assert.Contains(t, l.fails(125, "worker", "stop"), "has tasks of 1 run (third)")
	assert.Equal(t, worker, l.backgroundWorker())

	// It is killed, and the next worker continues its run.
	require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
	l.ended(worker)
	_, stderr = l.succeeds("submit", "--id", "fourth", "--", "true")
	next := l.backgroundWorker()
	require.NotZero(t, next)
	assert.NotEqual(t, worker, next)
	assert.Contains(t, stderr, fmt.Sprintf("started a host worker in the background (process %d)", next))
	l.goOn()
	for _, id := range []string{"third", "fourth"} {
		l.ok("wait", id)
	}

	harness.Eventually(t, "it has given the runs back", func() bool { code, _, _ := l.run("worker", "stop"); return code == 0 })
	assert.Zero(t, l.backgroundWorker())
	l.ended(next)
	_, stderr = l.succeeds("worker", "stop")
	assert.Contains(t, stderr, "no host worker uses")

	_, stderr = l.succeeds("submit", "--id", "fifth", "--", "true")
	assert.Contains(t, stderr, "started a host worker")
	l.ok("wait", "fifth")
}

// A task does not start one, in any environment it gives the
// command, because the host worker would exit with the task, and take other users' runs along.
func TestATaskStartsNoHostWorker(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	for name, wrapped := range map[string][]string{"plain": nil, "clean": {"env", "-i"}, "session": {"env", "-i", "setsid", "-w"}} {
		command := slices.Concat([]string{"run", "-n", "1", "--"}, wrapped, []string{"env", "HOME=" + l.home, "PATH=" + os.Getenv("PATH"),
			"CLUSTERRUN_DEVSERVER=" + harness.Devserver(t), harness.Clusterrun(t), "submit", "--id", name, "--", "true"})
		assert.Contains(t, l.ok(command...), name)
		assert.Zero(t, l.backgroundWorker(), name)
	}
}

// A background host worker exits after long enough without runs, and makes way for `clusterrun dev`.
func TestAHostWorkerInTheBackground(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	stdout := l.ok("worker", "--detach", "--idle-exit", "2s", "--json")
	worker := must.JSON[struct{ PID int }](t, stdout)
	require.Equal(t, worker.PID, l.backgroundWorker())
	l.ended(worker.PID)
	log := must.Get(os.ReadFile(filepath.Join(l.state(), "worker.log")))(t)
	assert.Contains(t, string(log), "this host worker was idle for too long; exiting")

	l.ok("submit", "--id", "run", "--", "true")
	onDemand := l.backgroundWorker()
	require.NotZero(t, onDemand)
	l.ok("wait", "run")
	_, stderr := l.succeeds("worker", "--detach")
	assert.Contains(t, stderr, fmt.Sprintf("is already running as process %d", onDemand))
	harness.Eventually(t, "it has given the run back", func() bool { code, _, _ := l.run("worker", "stop"); return code == 0 })
	l.ok("worker", "--detach")
	last := l.backgroundWorker()
	l.ok("worker", "upgrade")
	assert.Equal(t, last, l.backgroundWorker())
	l.ok("dev", "--detach", "--headless", "--port", "0")
	assert.Zero(t, l.backgroundWorker())
	l.ok("dev", "stop")
}

// A host worker is started, reloaded and stopped according to its unit. It notifies systemd that
// it is ready once it has joined its fleet, and again after an upgrade, in the same process; and
// that it is stopping. Probes of host workers and controllers succeed once they serve, but not
// before there is a server.
func TestSystemdHearsOfAHostWorker(t *testing.T) {
	t.Parallel()
	s := harness.StartServer(t, "--headless")
	host, controller := harness.FreeAddress(t), harness.FreeAddress(t)
	awaits := func(address string, status int) {
		t.Helper()
		harness.Eventually(t, http.StatusText(status)+" at "+address, func() bool {
			got, _ := probed(address)
			return got == status
		})
	}
	socket := filepath.Join(t.TempDir(), "notify")
	l := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"}))(t)
	defer l.Close()
	next := func() string {
		t.Helper()
		require.NoError(t, l.SetReadDeadline(time.Now().Add(time.Minute)))
		message := make([]byte, 1000)
		n := must.Get(l.Read(message))(t)
		return string(message[:n])
	}

	code, unit, stderr := s.CLI(t, "worker", "unit")
	require.Zero(t, code, stderr)
	unit = strings.NewReplacer("%S", t.TempDir(), "%i", "train").Replace(unit)
	flags := "CLUSTERRUN_WORKER_FLAGS=--host-name host-a --slots 2 --advertise 127.0.0.1 --metrics " + host
	// A shell expands the remaining words like systemd.
	call := func(key string) *harness.Process {
		t.Helper()
		_, rest, found := strings.Cut(unit, "\n"+key+"=")
		require.True(t, found, unit)
		line, _, _ := strings.Cut(rest, "\n")
		return harness.Start(t, t.TempDir(), harness.Env(t.TempDir(), "NOTIFY_SOCKET="+socket, "TEMPORAL_ADDRESS="+s.Address, flags), "bash", "-c", "exec "+line)
	}

	s.Kill()
	other := harness.Start(t, t.TempDir(), harness.Env(t.TempDir(), "TEMPORAL_ADDRESS="+s.Address), harness.Clusterrun(t), "worker", "--role", "controller", "--metrics", controller)
	w := call("ExecStart")
	awaits(controller, http.StatusServiceUnavailable)
	awaits(host, http.StatusServiceUnavailable)
	_, text := probed(host)
	assert.Equal(t, "not ready: this host worker's queues are not being served", text)
	s.Restart()
	awaits(controller, http.StatusOK)
	require.Equal(t, "READY=1", next())
	awaits(host, http.StatusOK)
	_, text = probed(host)
	assert.Equal(t, "ready", text)
	out := s.OK(t, "host", "list")
	assert.Contains(t, out, "host-a", "it is registered by then")
	assert.Regexp(t, `(?m)^host-a .* 0 of 2 `, out)

	reload := call("ExecReload")
	require.Zero(t, reload.ExitCode(), reload.Stderr())
	require.Equal(t, "READY=1", next())
	assert.False(t, w.Exited(), "it is the same process")

	w.Kill(syscall.SIGTERM)
	require.Equal(t, "STOPPING=1", next())
	require.Zero(t, w.ExitCode(), w.Stderr())
	other.Kill(syscall.SIGTERM)
	assert.Zero(t, other.ExitCode(), other.Stderr())
}

// probed returns a host worker's answer to a probe. The code is 0 if it did not answer.
func probed(address string) (int, string) {
	r, err := http.Get("http://" + address + "/ready")
	if err != nil {
		return 0, ""
	}
	defer r.Body.Close()
	text, _ := io.ReadAll(r.Body)
	return r.StatusCode, strings.TrimSpace(string(text))
}
