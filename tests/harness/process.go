package harness

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

// Env returns the full environment of a program under test: PATH, HOME and extra.
func Env(home string, extra ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}, extra...)
}

// Process is a started program and its output.
type Process struct {
	*exec.Cmd
	t    testing.TB
	out  *buffer
	err  *buffer
	done chan struct{}
}

// Start starts a program and kills it, by its pid, when the test finishes.
func Start(t testing.TB, dir string, env []string, argv ...string) *Process {
	t.Helper()
	return StartAs(t, nil, dir, env, argv...)
}

// StartAs is Start as a different user, which requires root. If user is nil, it is Start.
func StartAs(t testing.TB, user *syscall.Credential, dir string, env []string, argv ...string) *Process {
	t.Helper()
	p := &Process{Cmd: exec.Command(argv[0], argv[1:]...), t: t, out: newBuffer(), err: newBuffer(), done: make(chan struct{})}
	p.Dir, p.Env = dir, env
	p.Cmd.Stdout, p.Cmd.Stderr = p.out, p.err
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: 0, Credential: user}
	p.begin()
	return p
}

func (p *Process) begin() {
	t := p.t
	t.Helper()
	heedSignals()
	// A leaked grandchild must not block the test by keeping its pipes open.
	p.WaitDelay = 2 * time.Second
	require.NoError(t, p.Cmd.Start())
	go func() {
		_ = p.Cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Kill(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(15 * time.Second):
			p.Kill(syscall.SIGKILL)
			<-p.done
		}
		if t.Failed() {
			t.Logf("%s\nstdout:\n%s\nstderr:\n%s", strings.Join(p.Args, " "), tail(p.Stdout()), tail(p.Stderr()))
		}
	})
}

// heedSignals makes programs under test start without ignored signals, even if a shell started the
// test in the background with ignored signals. A child gets the default action for signals that the
// test catches.
var heedSignals = sync.OnceFunc(func() {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
})

func tail(s string) string {
	if len(s) > 8000 {
		return "..." + s[len(s)-8000:]
	}
	return s
}

// Stdout and Stderr return the program's output so far.
func (p *Process) Stdout() string { return p.out.String() }
func (p *Process) Stderr() string { return p.err.String() }

// Kill sends a signal. The process may be gone.
func (p *Process) Kill(s syscall.Signal) { _ = p.Cmd.Process.Signal(s) }

// Exited reports whether the program has exited.
func (p *Process) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Dead reports whether the process itself has exited, even if other processes still hold its output
// open.
func (p *Process) Dead() bool {
	return p.Exited() || slices.Contains([]string{"Z", ""}, State(p.Process.Pid))
}

// EndsWithin waits for the exit, with a limit, and reports whether it happened.
func (p *Process) EndsWithin(bound time.Duration) bool {
	select {
	case <-p.done:
		return true
	case <-time.After(bound):
		return false
	}
}

// ExitCode waits for the exit. It is 128+N after a death by signal N.
func (p *Process) ExitCode() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(2 * time.Minute):
		p.t.Fatalf("%s does not end\nstdout:\n%s\nstderr:\n%s", strings.Join(p.Args, " "), tail(p.Stdout()), tail(p.Stderr()))
	}
	status := p.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// Eventually waits for a condition with a generous limit.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	Within(t, 2*time.Minute, what, condition)
}

// Within waits for a condition that must hold within a limit.
func Within(t testing.TB, bound time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(bound)
	for asked := time.Now(); !condition(); asked = time.Now() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", bound, what)
		}
		// A condition that runs a program, or reads all of /proc, takes at most a quarter of a
		// CPU.
		time.Sleep(min(max(10*time.Millisecond, 3*time.Since(asked)), time.Second))
	}
}

// Alive lists the machine's live processes, not counting zombies, that have the mark in their
// environment or arguments.
func Alive(mark string) []int {
	var pids []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		if pid == os.Getpid() {
			continue
		}
		env, _ := os.ReadFile(d + "/environ")
		args, _ := os.ReadFile(d + "/cmdline")
		if !bytes.Contains(env, []byte(mark)) && !bytes.Contains(args, []byte(mark)) {
			continue
		}
		if State(pid) != "Z" && State(pid) != "" {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// State returns a process's state letter, or "" if the process is gone.
func State(pid int) string {
	s, err := proc.ReadStat(pid)
	if err != nil {
		return ""
	}
	return string(s.State)
}

// Children lists a process's children.
func Children(pid int) []int {
	var pids []int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		for _, s := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(s); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// Cmdline returns a process's command line.
func Cmdline(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(string(b), "\x00", " ")
}

// buffer is a bytes.Buffer for two goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func newBuffer() *buffer { return &buffer{} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
