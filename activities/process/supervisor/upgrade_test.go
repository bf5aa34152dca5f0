package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/fork"
	"github.com/clusterrun/clusterrun/tests/must"
)

// newUpgradable returns a host that can be upgraded to this program, under the version that
// install sets.
func newUpgradable(t *testing.T) *host {
	t.Helper()
	return newHost(t, func(r *role) {
		dir := t.TempDir()
		r.Next, r.Version = filepath.Join(dir, "program"), filepath.Join(dir, "version")
		exe := must.Get(os.Executable())(t)
		require.NoError(t, os.Symlink(exe, r.Next))
	})
}

// install puts another version of the program on disk.
func (h *host) install(version string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(h.role.Version, []byte(version), 0o600))
}

// upgrade requests an upgrade to the program on disk.
func (h *host) upgrade() Upgraded {
	h.t.Helper()
	sides := h.count("side ")
	before, after, err := RequestUpgrade(h.ctx(), h.role.Dir)
	require.NoError(h.t, err)
	require.Empty(h.t, after.Error)
	require.Equal(h.t, before.PID, after.PID)
	h.awaitCount("side ", sides+1)
	h.connect()
	return after
}

// refused requests an impossible upgrade and returns why.
func (h *host) refused() string {
	h.t.Helper()
	_, after, err := RequestUpgrade(h.ctx(), h.role.Dir)
	require.NoError(h.t, err)
	require.NotEmpty(h.t, after.Error)
	return after.Error
}

func (h *host) release() {
	h.t.Helper()
	_, err := h.client.Release(h.ctx(), ReleaseRequest{Run: testRun, Stops: Stops{Stop: Stop{Signal: sigKILL}}})
	if !errors.Is(err, ErrLost) { // an outdated supervisor may exit before the side passes the answer on
		require.NoError(h.t, err)
	}
}

// outdated waits until the supervisor exits because of its version, and restarts it.
func (h *host) outdated() {
	h.t.Helper()
	require.Error(h.t, h.ended())
	assert.Contains(h.t, must.Read(h.t, h.dir, "supervisor.log"), ErrOutdated.Error())
	h.start()
}

// The side is replaced under running processes. The supervisor continues and also starts new
// processes. It exits once the run is released.
func TestAnOutdatedSupervisorEndsWhenNoRunIsLeft(t *testing.T) {
	h := newUpgradable(t)
	h.sh("steady", 0, `trap 'exit 7' TERM; while :; do sleep 0.01; done`)
	before := must.Get(h.client.Processes(h.ctx(), testRun))(t)
	h.install("1.1")
	after := h.upgrade()
	assert.Equal(t, "1.1", after.Version)
	assert.Equal(t, "1.0", after.Supervisor)
	assert.Equal(t, 1, after.Living)
	h.sh("late", 0, `exit 9`)
	assert.Equal(t, 9, h.wait("late", 0).Code)
	h.stop(sigTERM, long, "steady")
	assert.Equal(t, 7, h.wait("steady", 0).Code)
	processes := must.Get(h.client.Processes(h.ctx(), testRun))(t)
	require.Len(t, processes.Processes, 2)
	assert.Equal(t, before.Processes[0].PID, processes.Processes[1].PID)

	h.release()
	h.outdated()
	h.until("it says so", func() bool { u := Programs(h.role.Dir); return u != nil && u.Supervisor == "1.1" && u.Version == "1.1" })
	processes = must.Get(h.client.Processes(h.ctx(), testRun))(t)
	assert.Len(t, processes.Processes, 2, "the released run can be read")
}

// Without runs, a supervisor whose version differs exits immediately. One of the same version stays.
func TestAnIdleSupervisor(t *testing.T) {
	h := newUpgradable(t)
	after := h.upgrade()
	assert.Equal(t, "1.0", after.Version)
	for _, version := range []string{"1.1", "2.0"} {
		h.install(version)
		_, after, err := RequestUpgrade(h.ctx(), h.role.Dir)
		require.NoError(t, err)
		assert.Empty(t, after.Error)
		assert.Equal(t, version, after.Version)
		h.outdated()
	}
	assert.Equal(t, 3, h.count("ready "))
	require.NoError(t, h.cmd.Process.Signal(unix.SIGTERM))
	require.NoError(t, h.ended())
}

// A request to exit works even during an upgrade.
func TestARequestToEndDuringAnUpgrade(t *testing.T) {
	for ms := range 4 {
		t.Run(fmt.Sprintf("after %d ms", 5*ms), func(t *testing.T) {
			t.Parallel()
			h := newUpgradable(t)
			require.NoError(t, h.cmd.Process.Signal(SignalUpgrade))
			time.Sleep(time.Duration(5*ms) * time.Millisecond) // a different moment each time
			require.NoError(t, RequestEnd(h.ctx(), h.role.Dir, h.cmd.Process.Pid))
			require.NoError(t, h.ended())
		})
	}
}

// Several upgrades are requested at a time, by both signals, while tasks are started and ports are
// held.
func TestUpgradesAtOnce(t *testing.T) {
	h := newUpgradable(t)
	reply := must.Get(h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Count: 2000}))(t)
	h.sh("first", 0, `exec sleep 1000`)

	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			_, after, err := RequestUpgrade(h.ctx(), h.role.Dir)
			assert.NoError(t, err)
			assert.Empty(t, after.Error)
		})
	}
	for i := range 5 {
		task := fmt.Sprintf("during%d", i)
		for { // as the side does after it was replaced
			_, err := h.client.Start(h.ctx(), h.request(task, 0, `exec sleep 1000`))
			if err == nil {
				break
			}
			require.ErrorIs(t, err, ErrLost)
			h.connect()
		}
	}
	all.Wait()
	h.connect()
	again := must.Get(h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Count: 2000}))(t)
	assert.Equal(t, reply.Ports, again.Ports)
	processes := must.Get(h.client.Processes(h.ctx(), testRun))(t)
	require.Len(t, processes.Processes, 6)
	for _, p := range processes.Processes {
		assert.Nil(t, p.Exit)
	}
}

// If a program cannot be the side, the former one becomes it again, and the program is named.
func TestProgramsThatCannotBeTheSide(t *testing.T) {
	h := newUpgradable(t)
	p := h.sh("t", 0, `exec sleep 1000`)
	exe := must.Get(os.ReadFile("/proc/self/exe"))(t)
	write := func(content []byte, mode os.FileMode) func() {
		return func() { require.NoError(t, os.WriteFile(h.role.Next, content, mode)) }
	}
	for _, c := range []struct {
		name, why string
		put       func()
	}{
		{"missing", "no such file or directory", func() {}},
		{"a directory", "permission denied", func() { require.NoError(t, os.Mkdir(h.role.Next, 0o700)) }},
		{"not executable", "permission denied", write(exe, 0o600)},
		{"truncated", "", write(exe[:len(exe)/2], 0o700)},
		{"empty", "exec format error", write(nil, 0o700)},
		{"of no format", "exec format error", write([]byte("clusterrun\n"), 0o700)},
		{"another program", "it exited (exit code 0)", func() { require.NoError(t, os.Symlink("/bin/echo", h.role.Next)) }},
		{"one that fails", "it exited (exit code 1)", func() { require.NoError(t, os.Symlink("/bin/false", h.role.Next)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.t = t
			require.NoError(t, os.RemoveAll(h.role.Next))
			c.put()
			why := h.refused()
			assert.Contains(t, why, c.why)
			assert.Contains(t, why, h.role.Next)
		})
	}
	h.t = t
	h.connect()
	assert.False(t, gone(p.PID))
	h.stop(sigKILL, 0)
	assert.Equal(t, -sigKILL, h.wait("t", 0).Code)
}

// A supervisor killed under a side from another program leaves nothing behind.
func TestSupervisorKilledUnderAnUpgradedSide(t *testing.T) {
	h := newUpgradable(t)
	p := h.sh("t", 0, `exec sleep 1000`)
	h.upgrade()
	require.NoError(t, h.cmd.Process.Kill())
	require.Error(t, h.ended())
	h.until("the process is gone", func() bool { return gone(p.PID) })
	h.start()
	assert.True(t, h.wait("t", 0).Lost)
}

// A frozen side, a full disk, and a run being released.
func TestUpgradeOfWhatIsStuck(t *testing.T) {
	h := newUpgradable(t)
	h.sh("t", 0, `trap '' TERM; echo $$ >$D/t; while :; do sleep 0.01; done`)
	h.pidIn("t")
	released := make(chan error, 1)
	go func() {
		_, err := h.client.Release(context.Background(), ReleaseRequest{Run: testRun, Stops: Stops{Stop: Stop{Signal: sigTERM, Grace: time.Second}}})
		released <- err
	}()
	h.until("it is being released", func() bool {
		_, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun})
		return errors.Is(err, ErrReleased)
	})
	require.NoError(t, unix.Kill(h.sidePID(), unix.SIGSTOP))
	h.upgrade()
	require.ErrorIs(t, <-released, ErrLost)
	reply := must.Get(h.client.Release(h.ctx(), ReleaseRequest{Run: testRun, Stops: Stops{Stop: Stop{Signal: sigTERM, Grace: long}}}))(t)
	require.Len(t, reply.Processes, 1)
	assert.Equal(t, -sigKILL, reply.Processes[0].Exit.Code)
	h.until("it is archived", func() bool {
		found, err := filepath.Glob(filepath.Join(h.role.Dir, "*"+releasedJournal))
		return err == nil && len(found) == 1
	})
}

// A supervisor exits if its first side cannot be started.
func TestFirstSideFails(t *testing.T) {
	cfg := Config{State: &State{}, Side: []string{"no argument\x00"}, Log: slog.New(slog.DiscardHandler)}
	s := newSideKeeper(cfg, newTable(cfg.State))
	s.fork = fork.New()
	t.Cleanup(s.fork.Close)
	started := make(chan error, 1)
	s.keep(started, nil)
	require.Error(t, <-started)
}
