package embedded

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/filelock"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
)

// fakeVariable makes the test binary act as clusterrun-devserver: it locks, listens and writes its
// ready file in the same way.
const fakeVariable = "EMBEDDED_TEST_FAKE"

func TestMain(m *testing.M) {
	if os.Getenv(fakeVariable) != "" {
		os.Exit(fakeServer())
	}
	os.Exit(m.Run())
}

func fakeServer() int {
	db := flag.String("db", "", "")
	ready := flag.String("ready-file", "", "")
	port := flag.Int("port", 0, "")
	key := flag.String("key", "", "")
	lifeline := flag.Int("lifeline-fd", -1, "")
	_, _ = flag.Int("ui-port", 0, ""), flag.Bool("headless", false, "")
	_ = flag.Duration("idle-exit", 0, "")
	flag.Parse()
	if _, err := os.Stat(filepath.Join(filepath.Dir(*db), "broken")); err == nil {
		fmt.Fprintln(os.Stderr, "clusterrun-devserver: --db: of another version")
		return 1
	}
	if os.Remove(filepath.Join(filepath.Dir(*db), "killed-once")) == nil {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	lock, err := os.OpenFile(*db+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil || unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		fmt.Fprintln(os.Stderr, "clusterrun-devserver: the database is in use")
		return 1
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		return 1
	}
	if err := serveTLS(l, *key); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	time.Sleep(50 * time.Millisecond) // so that other processes can come in between
	b, _ := json.Marshal(Instance{PID: os.Getpid(), Address: l.Addr().String(), Namespace: "default", Boot: proc.BootID(), UID: os.Getuid(), Container: container()})
	_ = os.WriteFile(*ready+".tmp", b, 0o600)
	_ = os.Rename(*ready+".tmp", *ready)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	gone := make(chan struct{})
	if *lifeline >= 0 {
		go func() {
			_, _ = io.Copy(io.Discard, os.NewFile(uintptr(*lifeline), "lifeline"))
			close(gone)
		}()
	}
	select {
	case <-signals:
	case <-gone:
	}
	_ = os.Remove(*ready)
	return 0
}

// newHome is a home with a fake server. It kills all its processes at the end of the test.
func newHome(t *testing.T) Home {
	t.Helper()
	dir := t.TempDir()
	self := must.Get(os.Executable())(t)
	program := filepath.Join(dir, "fake")
	script := fmt.Sprintf("#!/bin/sh\n%s=1 exec %s \"$@\"\n", fakeVariable, self)
	require.NoError(t, os.WriteFile(program, []byte(script), 0o755))
	h := Home{Dir: filepath.Join(dir, "server"), Program: program}
	t.Cleanup(func() { kill(t, h) })
	return h
}

// kill kills the server and waits until its lock is free, or another server has it.
func kill(t *testing.T, h Home) {
	t.Helper()
	s, err := h.Find(context.Background())
	if s == nil || err != nil {
		return
	}
	require.NoError(t, syscall.Kill(s.PID, syscall.SIGKILL))
	require.Eventually(t, func() bool {
		held, err := filelock.IsHeld(h.dbLock())
		if err != nil || !held {
			return err == nil
		}
		other, err := h.Find(context.Background()) // restarted by a command
		return err == nil && other != nil && other.PID != s.PID
	}, 10*time.Second, time.Millisecond)
}

func TestNothingRuns(t *testing.T) {
	s := must.Get(newHome(t).Find(t.Context()))(t)
	assert.Nil(t, s)
}

func TestEnsure(t *testing.T) {
	h := newHome(t)
	first := must.Get(h.Ensure(t.Context(), ""))(t)
	assert.Equal(t, "default", first.Namespace)
	second := must.Get(h.Ensure(t.Context(), ""))(t)
	assert.Equal(t, first, second)

	info := must.Get(os.Stat(h.Dir))(t)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}

func TestManyAtOnceStartOneServer(t *testing.T) {
	h := newHome(t)
	var wg sync.WaitGroup
	pids := make([]int, 8)
	for i := range pids {
		wg.Go(func() {
			if s, err := h.Ensure(t.Context(), ""); assert.NoError(t, err) {
				pids[i] = s.PID
			}
		})
	}
	wg.Wait()
	for _, pid := range pids {
		assert.Equal(t, pids[0], pid)
	}
}

// A killed server leaves its ready file behind, which is not trusted, but the next server listens
// at the same address.
func TestAKilledServer(t *testing.T) {
	h := newHome(t)
	first := must.Get(h.Ensure(t.Context(), ""))(t)
	kill(t, h)
	assert.FileExists(t, h.readyFile())
	s := must.Get(h.Find(t.Context()))(t)
	assert.Nil(t, s)

	second := must.Get(h.Ensure(t.Context(), ""))(t)
	assert.NotEqual(t, first.PID, second.PID)
	assert.Equal(t, first.Address, second.Address)
}

func TestAPreferredAddressThatIsTaken(t *testing.T) {
	h := newHome(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	s := must.Get(h.Ensure(t.Context(), l.Addr().String()))(t)
	assert.NotEqual(t, l.Addr().String(), s.Address)
}

// broken keeps servers from starting.
func broken(t *testing.T, h Home) {
	t.Helper()
	require.NoError(t, os.MkdirAll(h.Dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(h.Dir, "broken"), nil, 0o600))
}

func TestAServerThatDoesNotStart(t *testing.T) {
	h := newHome(t)
	broken(t, h)
	_, err := h.Ensure(t.Context(), "")
	require.EqualError(t, err, "the embedded server did not start (exit status 1): --db: of another version")
}

func TestAServerThatIsKilledInItsStart(t *testing.T) {
	h := newHome(t)
	first := must.Get(h.Ensure(t.Context(), ""))(t)
	kill(t, h)
	require.NoError(t, os.WriteFile(filepath.Join(h.Dir, "killed-once"), nil, 0o600))
	s := must.Get(h.Ensure(t.Context(), ""))(t)
	assert.Equal(t, first.Address, s.Address)
}

func TestForeground(t *testing.T) {
	h := newHome(t)
	f := must.Get(h.StartForeground(t.Context(), 0, 0))(t)
	s := must.Get(h.Ensure(t.Context(), ""))(t)
	assert.Equal(t, f.PID, s.PID, "runs use it")

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, f.Stop(ctx))
	s = must.Get(h.Find(t.Context()))(t)
	assert.Nil(t, s)
	<-f.Exited() // the exit was received, so this must not block
}

func TestForegroundTakesOver(t *testing.T) {
	h := newHome(t)
	background := must.Get(h.Ensure(t.Context(), ""))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	f := must.Get(h.StartForeground(ctx, freePort(background.Address), 0))(t)
	assert.NotEqual(t, background.PID, f.PID)
	require.NoError(t, f.Stop(ctx))
}

func TestAMissingProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(ProgramVariable, "")
	_, err := Home{Dir: t.TempDir()}.Ensure(t.Context(), "")
	var missing *MissingError
	require.ErrorAs(t, err, &missing)
	assert.Contains(t, err.Error(), "build it with `make build`")

	t.Setenv(ProgramVariable, filepath.Join(t.TempDir(), "none"))
	_, err = Home{Dir: t.TempDir()}.Ensure(t.Context(), "")
	require.ErrorContains(t, err, ProgramVariable+" names ")
}

// A background server does not have its caller's files open: the lock of flock(1) is free when the
// command is done, and the reader of a pipe gets EOF.
func TestABackgroundServerHasNoFilesOfItsCaller(t *testing.T) {
	h := newHome(t)
	pipe := make([]int, 2)
	require.NoError(t, unix.Pipe(pipe)) // not closed on exec, like a shell's descriptors
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	ours := must.Get(os.Readlink(fmt.Sprintf("/proc/self/fd/%d", pipe[1])))(t)
	s := must.Get(h.Ensure(t.Context(), ""))(t)
	files := fmt.Sprintf("/proc/%d/fd", s.PID)
	open := must.Get(os.ReadDir(files))(t)
	for _, e := range open {
		theirs, _ := os.Readlink(filepath.Join(files, e.Name()))
		assert.NotEqual(t, ours, theirs, e.Name())
	}
}

// With `ulimit -n 20` a server neither became ready nor reported why, three times for a minute.
func TestAServerThatCannotOpenItsFilesIsNotStarted(t *testing.T) {
	if os.Getenv("EMBEDDED_TEST_LIMITED") == "" {
		cmd := exec.Command("sh", "-c", `ulimit -n 20 && exec "$0" -test.run="$1"`, os.Args[0], t.Name())
		cmd.Env = append(os.Environ(), "EMBEDDED_TEST_LIMITED=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	_, err := newHome(t).Ensure(t.Context(), "")
	assert.EqualError(t, err, "the embedded server needs 40 open files, but a process may have 20 on this machine; raise the limit: ulimit -n")
}
