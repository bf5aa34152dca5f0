package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Server is an embedded Temporal server on its own database file, or any other server.
type Server struct {
	t       testing.TB
	dir     string
	process *Process
	Address string
	UI      string
	// Database is nil if the server stores its data in its own file.
	Database *PostgreSQL
	// start restarts a server of [StartTemporal].
	start func()
}

// StartServer starts a server and waits until it serves.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir()}
	s.Start(append([]string{"--port", "0", "--ui-port", "0"}, args...)...)
	return s
}

// Dir returns the directory with all the server's files.
func (s *Server) Dir() string { return s.dir }

// Start starts or restarts the server.
func (s *Server) Start(args ...string) {
	s.t.Helper()
	ready := filepath.Join(s.dir, "ready.json")
	_ = os.Remove(ready)
	argv := append([]string{Devserver(s.t), "--db", filepath.Join(s.dir, "temporal.db"), "--ready-file", ready}, args...)
	s.process = Start(s.t, s.dir, Env(s.dir), argv...)
	Eventually(s.t, "the server is ready", func() bool {
		require.False(s.t, s.process.Exited(), "the server ended: %s", s.process.Stderr())
		_, err := os.Stat(ready)
		return err == nil
	})
	b, err := os.ReadFile(ready)
	require.NoError(s.t, err)
	var r struct{ Address, UI string }
	require.NoError(s.t, json.Unmarshal(b, &r))
	s.Address, s.UI = r.Address, r.UI
}

// KillAndRestart kills the server with SIGKILL and, after an outage, restarts it on the same file
// and port.
func (s *Server) KillAndRestart(away time.Duration) {
	s.t.Helper()
	s.Kill()
	time.Sleep(away) // the outage is under test
	s.Restart()
}

// Kill kills the server with SIGKILL.
func (s *Server) Kill() {
	s.t.Helper()
	s.process.Kill(syscall.SIGKILL)
	s.process.ExitCode()
}

// PID returns the process ID of the server.
func (s *Server) PID() int { return s.process.Cmd.Process.Pid }

// Exited reports whether the server has exited.
func (s *Server) Exited() bool { return s.process.Exited() }

// Restart restarts a killed server on the same database and port.
func (s *Server) Restart() {
	s.t.Helper()
	if s.start != nil {
		s.start()
		return
	}
	_, port, _ := strings.Cut(s.Address, ":")
	s.Start("--port", port, "--headless")
}

// DatabaseBytes returns the database's size.
func (s *Server) DatabaseBytes() (sum int64) {
	s.t.Helper()
	if s.Database != nil {
		return s.Database.Bytes()
	}
	files, err := filepath.Glob(filepath.Join(s.dir, "temporal.db*"))
	require.NoError(s.t, err)
	for _, f := range files {
		info, err := os.Stat(f)
		require.NoError(s.t, err)
		sum += info.Size()
	}
	return sum
}

// Client dials the server.
func (s *Server) Client() client.Client {
	s.t.Helper()
	c, err := client.Dial(client.Options{HostPort: s.Address, Logger: sdklog.NewStructuredLogger(discard())})
	require.NoError(s.t, err)
	s.t.Cleanup(c.Close)
	return c
}

// Worker is a host worker on the shared queues.
type Worker struct {
	*Process
	t     testing.TB
	State string
	Host  string
	argv  []string
	env   []string
}

// StartWorker starts `clusterrun worker` and waits until it polls. Its host name cannot be
// resolved on this machine, so tasks on other hosts use an address to reach it.
func (s *Server) StartWorker(t testing.TB, args ...string) *Worker {
	t.Helper()
	return s.StartWorkerWith(t, nil, args...)
}

// StartWorkerWith is StartWorker with additional environment variables.
func (s *Server) StartWorkerWith(t testing.TB, env []string, args ...string) *Worker {
	t.Helper()
	w := s.newWorker(t, Clusterrun(t), env, args...)
	w.Restart()
	return w
}

func (s *Server) newWorker(t testing.TB, program string, env []string, args ...string) *Worker {
	t.Helper()
	w := &Worker{t: t, State: filepath.Join(t.TempDir(), "state"), Host: "host-a"}
	w.argv = append([]string{program, "worker", "--address", s.Address, "--state-dir", w.State, "--host-name", w.Host, "--slots", "0"}, args...)
	w.env = Env(t.TempDir(), env...)
	return w
}

// Home returns the worker processes' home.
func (w *Worker) Home() string {
	for _, v := range w.env {
		if home, ok := strings.CutPrefix(v, "HOME="); ok {
			return home
		}
	}
	return ""
}

// Upgrade makes the program on disk take over. It returns the exit code and stderr of the command
// that requested it.
func (w *Worker) Upgrade() (code int, stderr string) {
	w.t.Helper()
	p := Start(w.t, w.t.TempDir(), w.env, w.argv[0], "worker", "upgrade", "--state-dir", w.State)
	return p.ExitCode(), p.Stderr()
}

// Restart restarts the worker on its state directory.
func (w *Worker) Restart() {
	w.t.Helper()
	w.Process = Start(w.t, w.t.TempDir(), w.env, w.argv...)
	w.AwaitReady()
}

// AwaitReady waits until the Temporal side polls.
func (w *Worker) AwaitReady() {
	w.t.Helper()
	Eventually(w.t, "the host worker polls", func() bool {
		require.False(w.t, w.Exited(), "the worker ended: %s", w.Stderr())
		return strings.Contains(w.Stderr(), "ready")
	})
}

// Side returns the Temporal-facing process's pid.
func (w *Worker) Side() int {
	w.t.Helper()
	side := 0
	Eventually(w.t, "the worker has a Temporal side", func() bool {
		for _, pid := range Children(w.Cmd.Process.Pid) {
			if strings.Contains(Cmdline(pid), " side") {
				side = pid
			}
		}
		return side != 0
	})
	return side
}

// CLI runs a clusterrun command to completion and returns its exit code, stdout and stderr.
func (s *Server) CLI(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := s.StartCLI(t, args...)
	code = p.ExitCode()
	return code, p.Stdout(), p.Stderr()
}

// StartCLI starts a clusterrun command against the server.
func (s *Server) StartCLI(t testing.TB, args ...string) *Process {
	t.Helper()
	home := t.TempDir()
	return Start(t, home, Env(home, "TEMPORAL_ADDRESS="+s.Address), append([]string{Clusterrun(t)}, args...)...)
}

// Temporal runs the temporal CLI.
func (s *Server) Temporal(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	home := t.TempDir()
	p := Start(t, home, Env(home, "TEMPORAL_ADDRESS="+s.Address), append([]string{TemporalCLI(t)}, args...)...)
	code = p.ExitCode()
	return code, p.Stdout(), p.Stderr()
}

// naps defines nap for a bash script that is waiting for a file: 50 ms, like `sleep 0.05`. A
// process per iteration would take a quarter of a CPU. Nothing is ever written to the pipe.
const naps = "exec {pipe}<> <(:); nap() { read -rt 0.05 -u $pipe || :; }\n"

// Bash returns the command for a bash script, which may call nap.
func Bash(script string) []string {
	if strings.Contains(script, "nap") {
		script = naps + script
	}
	return []string{"/bin/bash", "-c", script}
}

// Shell returns a task that runs a bash script, like [Bash].
func Shell(typ string, count int, script string) spec.TaskGroup {
	return spec.TaskGroup{Type: typ, Count: &count, Command: Bash(script)}
}

// Result waits until a run closes and returns its result, even if it failed.
func Result(t testing.TB, run client.WorkflowRun) spec.RunResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var result spec.RunResult
	err := run.Get(ctx, &result)
	if err != nil {
		require.NoError(t, detailsOf(err, &result), fmt.Sprint(err))
	}
	return result
}

// AwaitEnd waits until the server's process exits.
func (s *Server) AwaitEnd() { s.process.ExitCode() }

// Signal sends a signal to the server's process.
func (s *Server) Signal(sig syscall.Signal) { s.process.Kill(sig) }
