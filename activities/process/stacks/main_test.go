package stacks

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
)

// The tests run this binary again as the programs to capture.
const roleVar = "CLUSTERRUN_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		nativeBound = time.Minute // no test is about its duration
		os.Exit(m.Run())
	case "threads":
		manyThreads()
	case "answer":
		answer()
	}
}

// manyThreads runs as many sleeping threads as its environment says.
func manyThreads() {
	n, _ := strconv.Atoi(os.Getenv("N"))
	ready := make(chan struct{})
	for range n {
		go func() {
			runtime.LockOSThread()
			ready <- struct{}{}
			var fds []unix.PollFd
			for {
				_, _ = unix.Poll(fds, -1)
			}
		}()
	}
	for range n {
		<-ready
	}
	fmt.Println("ready")
	select {}
}

// answer is a program in a language other than Python that has opted in.
func answer() {
	f, err := os.OpenFile(os.Getenv("CLUSTERRUN_STACK_FILE")+"."+strconv.Itoa(os.Getpid()), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		panic(err)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.Signal(Signal))
	fmt.Println("ready")
	for range asked {
		if text := os.Getenv("SAYS"); text != "" {
			fmt.Fprintln(f, text)
		} else {
			_, _ = f.Write([]byte(strings.Repeat("x", 100) + "\n"))
			for range 3 * maxAnswer / 101 {
				_, _ = f.Write([]byte(strings.Repeat("x", 100) + "\n"))
			}
		}
	}
}

// program is a task's program: a session leader with a log directory.
type program struct {
	t   *testing.T
	cmd *exec.Cmd
	pid int
	dir string
}

// startProgram starts a program and waits for "ready".
func startProgram(t *testing.T, env []string, argv ...string) *program {
	t.Helper()
	p := &program{t: t, dir: t.TempDir()}
	p.cmd = exec.Command(argv[0], argv[1:]...)
	p.cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "LOGS=" + p.dir,
		"CLUSTERRUN_STACK_SIGNAL=" + strconv.Itoa(Signal), "CLUSTERRUN_STACK_FILE=" + AnswerBase(p.dir),
	}, env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	p.cmd.Stderr = os.Stderr
	out := must.Get(p.cmd.StdoutPipe())(t)
	require.NoError(t, p.cmd.Start())
	p.pid = p.cmd.Process.Pid
	t.Cleanup(func() {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	line := must.Get(bufio.NewReader(out).ReadString('\n'))(t)
	require.Equal(t, "ready\n", line)
	return p
}

func startSelf(t *testing.T, role string, env ...string) *program {
	t.Helper()
	self := must.Get(os.Executable())(t)
	return startProgram(t, append(env, roleVar+"="+role), self)
}

func (p *program) task() Task {
	return Task{Name: "worker-0", PID: p.pid, LogDir: p.dir, Root: p.dir, Head: []string{"a line of the caller"}}
}

// capture captures one task and returns the contents of the file.
func (p *program) capture() string {
	p.t.Helper()
	r := p.captureTask(p.task())
	require.NoError(p.t, r.Err)
	text := must.Get(os.ReadFile(r.File))(p.t)
	return string(text)
}

func (p *program) captureTask(task Task) Result {
	p.t.Helper()
	// Much more than a capture takes, because no test is about its duration.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	results := must.Get(Capture(ctx, []Task{task}, cookieVar))(p.t)
	require.Len(p.t, results, 1)
	return results[0]
}

const cookieVar = "CLUSTERRUN_COOKIE"

// alive fails the test if the process has exited.
func (p *program) alive() {
	p.t.Helper()
	s := must.Get(proc.ReadStat(p.pid))(p.t)
	require.False(p.t, s.Dead(), "it has died of it")
}

// sleeps waits until the program or a child executes sleep, because a script reports "ready"
// earlier.
func (p *program) sleeps() *program {
	p.t.Helper()
	eventually(p.t, "it sleeps", func() bool {
		all := must.Get(readTable())(p.t)
		sleeping := false
		for _, s := range all {
			sleeping = sleeping || s.Session == p.pid && s.Name == "sleep" && s.State == 'S'
		}
		return sleeping && all[p.pid].State == 'S'
	})
	return p
}

// eventually waits for another process's effect.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for asked := time.Now(); !condition(); asked = time.Now() {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
		time.Sleep(max(5*time.Millisecond, 2*time.Since(asked))) // a capture is expensive
	}
}

// script writes a file that a test executes.
func script(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}
