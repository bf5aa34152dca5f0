package homeworker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/mocks"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// connectVar makes this program connect to the named socket, like another user's command.
const connectVar = "TEST_CONNECT"

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(connectVar) != "":
		_, err := connectTo(os.Getenv(connectVar))
		fmt.Print(err != nil)
	case len(os.Args) == 2 && os.Args[1] == "home-worker":
		os.Exit(homeWorker())
	default:
		os.Exit(m.Run())
	}
}

// homeWorker is a home worker without a server; it reports its process ID to commands.
func homeWorker() int {
	var h Home
	if err := json.Unmarshal([]byte(os.Getenv(HomeVar)), &h); err != nil {
		panic(err)
	}
	if h.Server.Namespace == "killed" && os.Mkdir(filepath.Join(h.StateDir, "killed"), 0o700) == nil {
		return 1
	}
	s := &server{log: zap.NewNop(), idle: time.Minute, attend: func(c *net.UnixConn) error {
		_, _ = fmt.Fprintln(c, os.Getpid())
		_, _ = io.Copy(io.Discard, c)
		return nil
	}, exit: func(context.Context) bool { return true }}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := s.serve(ctx, h, func(text string) {
		_, _ = os.Stdout.WriteString(text)
		_ = os.Stdout.Close()
	}, func(context.Context) error {
		if h.Server.Namespace == "away" {
			return fmt.Errorf("no server")
		}
		return nil
	})
	if err != nil {
		return 1
	}
	return 0
}

// newHome returns a home with a home worker that is stopped after the test.
func newHome(t *testing.T) Home {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "home"))(t) // short enough for sockets
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return Home{StateDir: dir, Server: connect.Options{Address: "host:7233"}, Umask: 0o022}
}

// ask returns the process that serves a command, and closes the connection.
func ask(t *testing.T, h Home) int {
	t.Helper()
	c := must.Get(h.dial(t.Context()))(t)
	defer c.Close()
	var pid int
	_, err := fmt.Fscan(c, &pid)
	require.NoError(t, err)
	return pid
}

func TestCommandsShareOne(t *testing.T) {
	h := newHome(t)
	pids := make([]int, 8)
	var all sync.WaitGroup
	for i := range pids {
		all.Go(func() { pids[i] = ask(t, h) })
	}
	all.Wait()
	for _, pid := range pids {
		assert.Equal(t, pids[0], pid)
	}
	assert.Equal(t, pids[0], ask(t, h))
	dir := must.Get(os.Stat(filepath.Dir(must.Get(h.socket())(t))))(t)
	assert.Equal(t, os.FileMode(0o700), dir.Mode().Perm())
}

func TestNewOneDies(t *testing.T) {
	h := newHome(t)
	h.Server.Namespace = "killed"
	assert.NotZero(t, ask(t, h))
	assert.DirExists(t, filepath.Join(h.StateDir, "killed"))
}

func TestWhatCommandsMustShare(t *testing.T) {
	h := newHome(t)
	before := h.digest()
	for name, change := range map[string]func(h *Home){
		"address":   func(h *Home) { h.Server.Address = "other:7233" },
		"namespace": func(h *Home) { h.Server.Namespace = "other" },
		"key":       func(h *Home) { h.Server.APIKeyFile = "secret" },
		"embedded":  func(h *Home) { h.Server.Embedded = h.StateDir },
		"umask":     func(h *Home) { h.Umask = 0o077 },
	} {
		other := h
		change(&other)
		assert.NotEqual(t, before, other.digest(), name)
	}
	assert.Equal(t, before, h.digest())
	t.Setenv("TEMPORAL_API_KEY", "another")
	assert.NotEqual(t, before, h.digest())
	h.Server.Embedded = h.StateDir
	embedded := h.digest()
	h.Server.Address = "moved:7233"
	assert.Equal(t, embedded, h.digest(), "the embedded server may have another address when it is started again")
}

func TestAHomeWorkerThatCannotReachTheServer(t *testing.T) {
	h := newHome(t)
	h.Server.Namespace = "away"
	_, err := h.dial(t.Context())
	var unreached *UnreachedError
	require.ErrorAs(t, err, &unreached)
	assert.EqualError(t, err, "no server")
}

func TestAnotherIsStarted(t *testing.T) {
	h := newHome(t)
	for name, sent := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "frozen": syscall.SIGSTOP, "asked to end": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			first := ask(t, h)
			require.NoError(t, syscall.Kill(first, sent))
			require.Eventually(t, func() bool { return ended(first) || sent == syscall.SIGSTOP && isFrozen(first) }, 20*time.Second, 5*time.Millisecond)
			second := ask(t, h)
			assert.NotEqual(t, first, second)
			_ = syscall.Kill(first, syscall.SIGCONT) // a replaced one exits
			require.Eventually(t, func() bool { return ended(first) }, 20*time.Second, 20*time.Millisecond)
			assert.Equal(t, second, ask(t, h), "it has left the socket of the other")
		})
	}
}

func isFrozen(pid int) bool {
	s, err := proc.ReadStat(pid)
	return err == nil && s.State == 'T'
}

// ended reports whether a process has exited. This process reaps its own children.
func ended(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }

func TestItLeavesWithItsHome(t *testing.T) {
	h := newHome(t)
	pid := ask(t, h)
	require.NoError(t, os.RemoveAll(h.StateDir))
	require.Eventually(t, func() bool { return ended(pid) }, 20*time.Second, 20*time.Millisecond)
}

func TestItLeavesWhenNobodyNeedsIt(t *testing.T) {
	h := newHome(t)
	path := must.Get(h.socket())(t)
	needed := true
	s := &server{log: zap.NewNop(), attend: func(c *net.UnixConn) error {
		_, err := io.Copy(io.Discard, c)
		return err
	}, exit: func(ctx context.Context) bool {
		_, err := connectTo(path)
		assert.Error(t, err, "a command must not rely on it now")
		defer func() { needed = false }() // no run needs it any more
		return !needed
	}}
	ready, left := make(chan bool), make(chan error)
	go func() {
		left <- s.serve(t.Context(), h, func(string) { close(ready) }, func(context.Context) error { return nil })
	}()
	<-ready
	c := must.Get(connectTo(path))(t)
	select {
	case err := <-left:
		t.Fatalf("it has left a command: %v", err)
	case <-time.After(2 * idleLook):
	}
	require.NoError(t, c.Close())
	require.NoError(t, <-left)
	assert.False(t, needed)
	assert.NoFileExists(t, path)
	_, err := filelock.Try(path + ".lock")
	assert.ErrorIs(t, err, filelock.ErrLocked, "another is started once it has exited")
}

func TestAnotherUserIsNotServed(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("it takes root to be another user")
	}
	dir := must.Get(os.MkdirTemp("", "home"))(t)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	program := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(program, must.Get(os.ReadFile("/proc/self/exe"))(t), 0o755))
	path := filepath.Join(dir, "socket")
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	defer l.Close()
	require.NoError(t, os.Chmod(path, 0o777))
	s := &server{log: zap.NewNop(), attend: func(*net.UnixConn) error {
		t.Error("it was served")
		return nil
	}}
	failed := make(chan error, 1)
	go func() {
		c, err := l.AcceptUnix()
		if err == nil {
			err = s.greet(c)
			c.Close()
		}
		failed <- err
	}()
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), connectVar+"="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	assert.Equal(t, "true", strings.TrimSpace(string(must.Get(cmd.Output())(t))))
	assert.ErrorContains(t, <-failed, "belongs to user "+strconv.Itoa(65534))
}

// linked returns a command's link, and the home worker's end of it.
func linked(t *testing.T) (*Link, *json.Decoder, *json.Encoder) {
	t.Helper()
	fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "link")
		ends[i] = must.Get(net.FileConn(f))(t).(*net.UnixConn)
		require.NoError(t, f.Close())
		t.Cleanup(func() { _ = ends[i].Close() })
	}
	return &Link{ends[0], json.NewDecoder(ends[0])}, json.NewDecoder(ends[1]), json.NewEncoder(ends[1])
}

var wanted = &spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Count: new(1), Command: []string{"true"}}}}

// A signal must not cancel the request to start a run, because the run would be unknown here,
// and no command would end it.
func TestASignalDoesNotCancelTheStartOfARun(t *testing.T) {
	l, in, out := linked(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		var asked request
		if in.Decode(&asked) == nil && asked.Start != nil {
			cancel()
			_ = out.Encode(event{Execution: "execution"})
		}
	}()
	run, err := l.Start(ctx, &mocks.Client{}, wanted, starter.Options{ID: "x", Queue: "q"})
	require.NoError(t, err)
	assert.Equal(t, "execution", run.ExecutionID)
}

// The wait for a server that does not answer is limited, although the server may start the run.
func TestAStartIsNotAwaitedForever(t *testing.T) {
	hurriedBound = time.Millisecond
	defer func() { hurriedBound = 2 * time.Second }()
	l, _, _ := linked(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run, err := l.Start(ctx, &mocks.Client{}, wanted, starter.Options{ID: "x", Queue: "q"})
	assert.Nil(t, run)
	assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "what is known of the run has to stay")
}

// A refused start leaves nothing behind.
func TestARefusedStart(t *testing.T) {
	l, _, out := linked(t)
	require.NoError(t, out.Encode(event{Refused: "no"}))
	_, err := l.Start(t.Context(), &mocks.Client{}, wanted, starter.Options{ID: "x", Queue: "q"})
	assert.EqualError(t, err, "no")
}
