package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workers/embedded"
)

func (l *local) state() string { return filepath.Join(l.home, ".local/state/clusterrun") }

// server is the running embedded server, or nil.
func (l *local) server() *embedded.Instance {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	s, _ := embedded.Home{Dir: filepath.Join(l.state(), "server")}.Find(ctx)
	return s
}

// dial connects to the embedded server.
func (l *local) dial() client.Client {
	l.t.Helper()
	s := l.server()
	require.NotNil(l.t, s)
	c, err := connect.Dial(l.t.Context(), connect.Options{Address: s.Address, Embedded: filepath.Join(l.state(), "server")},
		sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), time.Minute)
	require.NoError(l.t, err)
	l.t.Cleanup(c.Close)
	return c
}

// awaitServer waits for a server other than the given one.
func (l *local) awaitServer(last *embedded.Instance) *embedded.Instance {
	l.t.Helper()
	var s *embedded.Instance
	harness.Eventually(l.t, "another server", func() bool {
		s = l.server()
		return s != nil && s.PID != last.PID
	})
	return s
}

// untilGo is a command that succeeds once the file go exists in the home.
func untilGo(l *local) []string {
	return []string{"--", "bash", "-c", harness.Napping("echo started; until [ -e " + l.home + "/go ]; do nap; done")}
}

func (l *local) goOn() {
	l.t.Helper()
	require.NoError(l.t, os.WriteFile(filepath.Join(l.home, "go"), nil, 0o644))
}

// connected reports whether a process in this test owns a socket. Only root can see that.
func connected(pid int) bool {
	fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return slices.ContainsFunc(fds, func(fd string) bool {
		target, _ := os.Readlink(fd)
		return strings.HasPrefix(target, "socket:")
	})
}

// If the embedded server is killed and another program takes its port, the next command starts it
// on a different port, and waiting commands find it there.
func TestWhoWaitsFollowsTheServer(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can look whether they wait")
	}
	l := newLocal(t)
	run := l.start(append([]string{"run", "--id", "here", "-n", "1"}, untilGo(l)...)...)
	harness.Eventually(t, "the task runs", func() bool { return strings.Contains(run.Stdout(), "started") })
	worker := l.start("worker")
	harness.Eventually(t, "the worker is ready", func() bool { return strings.Contains(worker.Stderr(), "ready") })
	remote := l.start(append([]string{"run", "--remote", "--id", "there", "-n", "1"}, untilGo(l)...)...)
	harness.Eventually(t, "the task runs there", func() bool {
		_, stdout, _ := l.run("status", "there")
		return strings.Contains(stdout, "running")
	})
	ending := []*harness.Process{run, remote, l.start("wait", "here"), l.start("logs", "-f", "here")}
	harness.Eventually(t, "they wait", func() bool {
		for _, p := range ending {
			if !connected(p.Cmd.Process.Pid) {
				return false
			}
		}
		return true
	})

	// No command starts a server while the test holds this lock.
	starting, err := os.OpenFile(filepath.Join(l.state(), "server", "start.lock"), os.O_RDWR, 0)
	require.NoError(t, err)
	defer starting.Close()
	first := l.server()
	require.NotNil(t, first)
	require.NoError(t, unix.Flock(int(starting.Fd()), unix.LOCK_EX))
	require.NoError(t, syscall.Kill(first.PID, syscall.SIGKILL))
	var stranger net.Listener
	harness.Eventually(t, "the port is somebody else's", func() bool {
		stranger, err = net.Listen("tcp", first.Address)
		return err == nil
	})
	defer stranger.Close()
	require.NoError(t, unix.Flock(int(starting.Fd()), unix.LOCK_UN))
	assert.Contains(t, l.ok("list"), "here")
	assert.NotEqual(t, first.Address, l.awaitServer(first).Address)

	l.goOn()
	for _, p := range ending {
		assert.Zero(t, p.ExitCode(), "%s: %s", p.Args, p.Stderr())
	}
	worker.Kill(syscall.SIGTERM)
	assert.Zero(t, worker.ExitCode())
}

// A single signal does not stop submitted runs; without runs it is enough.
func TestDevAsksBeforeItEndsRuns(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	dev := l.start("dev", "--port", "0", "--headless")
	harness.Eventually(t, "it is ready", func() bool { return strings.Contains(dev.Stdout(), "Submit with") })
	dev.Kill(syscall.SIGTERM)
	assert.Zero(t, dev.ExitCode(), dev.Stderr())
	assert.Contains(t, dev.Stderr(), "stopping")
	assert.NotContains(t, dev.Stderr(), "repeat within")

	own := l.start(append([]string{"run", "--id", "own", "-n", "1"}, untilGo(l)...)...)
	harness.Eventually(t, "a server is there", func() bool { return strings.Contains(own.Stdout(), "started") })

	metrics := harness.FreeAddress(t)
	stdout := l.ok("dev", "--detach", "--port", "0", "--headless", "--server-metrics", metrics)
	assert.Contains(t, stdout, "Stop with        clusterrun dev stop\n")
	pid := must.Get(strconv.Atoi(cli.DevPID(l.state())))(t)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	ended := func() bool { s := harness.State(pid); return s == "" || s == "Z" }
	said := func(what string) func() bool {
		return func() bool {
			log, _ := os.ReadFile(filepath.Join(l.state(), "dev.log"))
			return strings.Contains(string(log), what)
		}
	}
	again, stderr := l.succeeds("dev", "--detach")
	assert.Contains(t, stderr, fmt.Sprintf("is already running as process %d", pid))
	assert.Equal(t, stdout, again, "it says how to use and end it")
	assert.Contains(t, l.fails(125, "dev", "--port", "0", "--headless"), fmt.Sprintf("(pid %d) is already running", pid))

	l.ok(append([]string{"submit", "--id", "submitted", "-n", "1"}, untilGo(l)...)...)
	first := l.server()
	require.NotNil(t, first)
	require.NoError(t, syscall.Kill(first.PID, syscall.SIGKILL))
	assert.Equal(t, first.Address, l.awaitServer(first).Address, "a server that ends by itself is started again")
	harness.Eventually(t, "with its metrics", func() bool {
		_, text := scrape(t, metrics)
		return strings.Contains(text, "service_requests{")
	})

	assert.Contains(t, l.fails(125, "dev", "stop"), "run submitted is open, and its processes would be stopped with")
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	harness.Eventually(t, "it asks", said("repeat within"))
	harness.Eventually(t, "it continues", said(": continuing"))
	require.False(t, ended())
	require.NoError(t, syscall.Kill(pid, syscall.SIGINT))
	harness.Eventually(t, "it asks again", said("got SIGINT"))
	assert.True(t, said("run submitted is open, and its processes on this machine would be stopped")(), "it names the run")
	_, stderr = l.succeeds("dev", "stop", "--force")
	assert.Contains(t, stderr, fmt.Sprintf("`clusterrun dev` (pid %d) has exited", pid))
	assert.True(t, ended())
	_, stderr = l.succeeds("dev", "stop")
	assert.Contains(t, stderr, "no `clusterrun dev` uses "+l.state())

	l.goOn()
	assert.Zero(t, own.ExitCode(), "a run with processes of its own goes on: %s", own.Stderr())
}
