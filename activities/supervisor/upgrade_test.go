package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// newUpgradable returns a host whose supervisor lets another program take over: this one, which
// versions says more of.
func newUpgradable(t *testing.T, change func(*role)) *host {
	t.Helper()
	h := newHost(t, func(r *role) {
		dir := t.TempDir()
		r.Next, r.Versions = filepath.Join(dir, "program"), filepath.Join(dir, "versions")
		exe, err := os.Executable()
		require.NoError(t, err)
		require.NoError(t, os.Symlink(exe, r.Next))
		if change != nil {
			change(r)
		}
	})
	bystander, err := strconv.Atoi(h.lastEvent("bystander "))
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Kill(bystander, unix.SIGKILL) })
	return h
}

// versions puts another program on disk: one that writes records of what is handed over from
// version oldest to newest.
func (h *host) versions(oldest, newest int, program string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(h.role.Versions, fmt.Appendf(nil, "%d %d %s", oldest, newest, program), 0o600))
}

// upgrade has the program on disk take over.
func (h *host) upgrade() {
	h.t.Helper()
	sides := h.count("side ")
	before, after, err := RequestUpgrade(h.ctx(), h.role.Dir)
	require.NoError(h.t, err)
	require.Empty(h.t, after.Error)
	require.Equal(h.t, before.PID, after.PID)
	h.awaitCount("side ", sides+1)
	h.connect()
}

// refused tries to, and returns why that is not possible.
func (h *host) refused() string {
	h.t.Helper()
	_, after, err := RequestUpgrade(h.ctx(), h.role.Dir)
	require.NoError(h.t, err)
	require.NotEmpty(h.t, after.Error)
	return after.Error
}

// N → N+1 → N, while processes run, end, and are about to be killed.
func TestAnotherProgramTakesOver(t *testing.T) {
	h := newUpgradable(t, nil)
	h.sh("steady", 0, `trap 'exit 7' TERM; while :; do sleep 0.01; done`)
	h.sh("stubborn", 0, `trap '' TERM; echo $$ >$D/stubborn; while :; do sleep 0.01; done`)
	h.sh("daemon", 0, `setsid sh -c 'echo $$ >$D/daemon; exec sleep 1000' & exec sleep 1000`)
	h.pidIn("stubborn")
	daemon := h.pidIn("daemon")
	before, err := h.client.Processes(h.ctx(), testRun)
	require.NoError(t, err)

	h.versions(1, 2, "1.1")
	h.upgrade()
	_, err = h.client.Stop(h.ctx(), StopRequest{
		Run: testRun, Tasks: []string{"stubborn"}, Signal: sigTERM, Grace: time.Second, Reason: ReasonTerminate, Detail: "why",
	})
	require.NoError(t, err)
	h.versions(1, 1, "1.0")
	h.upgrade()
	after, err := h.client.Processes(h.ctx(), testRun)
	require.NoError(t, err)
	require.Equal(t, len(before.Processes), len(after.Processes))
	for i, p := range before.Processes {
		assert.Equal(t, p.PID, after.Processes[i].PID)
		assert.Equal(t, p.Started, after.Processes[i].Started)
	}

	assert.Equal(t, -sigKILL, h.wait("stubborn", 0).Code)
	assert.Equal(t, ReasonTerminate, h.wait("stubborn", 0).Reason)
	assert.Equal(t, "why", h.wait("stubborn", 0).Detail)
	h.stop(sigTERM, long, "steady", "daemon")
	assert.Equal(t, 7, h.wait("steady", 0).Code)
	h.wait("daemon", 0)
	assert.True(t, gone(daemon))
	bystander, err := strconv.Atoi(h.lastEvent("bystander "))
	require.NoError(t, err)
	assert.False(t, gone(bystander), "what this program has started itself is nobody's to end")
	// What is started now is no orphan, and ends as usual.
	h.sh("late", 0, `exit 9`)
	assert.Equal(t, 9, h.wait("late", 0).Code)
}

// Processes end before, while and after the program is executed.
func TestEndsWhileAnotherProgramTakesOver(t *testing.T) {
	h := newUpgradable(t, nil)
	const n = 40
	for i := range n {
		h.sh(fmt.Sprintf("t%d", i), 0, fmt.Sprintf(`while ! test -e $D/go; do sleep 0.01; done; sleep 0.%02d; exit %d`, i*2, i+1))
	}
	require.NoError(t, os.WriteFile(h.file("go"), nil, 0o600))
	for range 3 {
		h.upgrade()
	}
	for i := range n {
		exit := h.wait(fmt.Sprintf("t%d", i), 0)
		assert.Equal(t, i+1, exit.Code, "%+v", exit)
		assert.Empty(t, exit.Reason)
		assert.False(t, exit.Lost)
	}
}

// Several ask at once, with signals of both kinds, while tasks are started and ports are held.
func TestUpgradesAtOnce(t *testing.T) {
	h := newUpgradable(t, nil)
	reply, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Count: 2000, Store: "127.0.0.1:0"})
	require.NoError(t, err)
	h.sh("first", 0, `exec sleep 1000`)
	client, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(reply.Ports[0])))
	require.NoError(t, err)
	defer client.Close()
	ping := func() {
		_, err := client.Write([]byte{13, 7, 0, 0, 0})
		require.NoError(t, err)
		_, err = io.ReadFull(client, make([]byte, 4))
		require.NoError(t, err)
	}
	_, err = client.Write([]byte{0, 0xCE, 0xF7, 0x85, 0x3C})
	require.NoError(t, err)
	ping()

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
	ping()
	h.connect()
	again, err := h.client.Lease(h.ctx(), PortLeaseRequest{Run: testRun, Count: 2000, Store: "127.0.0.1:0"})
	require.NoError(t, err)
	assert.Equal(t, reply.Ports, again.Ports)
	processes, err := h.client.Processes(h.ctx(), testRun)
	require.NoError(t, err)
	require.Len(t, processes.Processes, 6)
	for _, p := range processes.Processes {
		assert.Nil(t, p.Exit)
	}
}

// What cannot take over is refused by name, and nothing has happened.
func TestProgramsThatCannotTakeOver(t *testing.T) {
	h := newUpgradable(t, nil)
	p := h.sh("t", 0, `exec sleep 1000`)
	exe, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	write := func(content []byte, mode os.FileMode) func() {
		return func() { require.NoError(t, os.WriteFile(h.role.Next, content, mode)) }
	}
	for _, c := range []struct {
		name, why string
		put       func()
	}{
		{"missing", "no such file or directory", func() {}},
		{"a directory", "cannot be executed: permission denied", func() { require.NoError(t, os.Mkdir(h.role.Next, 0o700)) }},
		{"not executable", "cannot be executed: permission denied", write(exe, 0o600)},
		{"truncated", "", write(exe[:len(exe)/2], 0o700)},
		{"empty", "exec format error", write(nil, 0o700)},
		{"of no format", "exec format error", write([]byte("clusterrun\n"), 0o700)},
		{"another program", "it does not know how to take over", func() { require.NoError(t, os.Symlink("/bin/echo", h.role.Next)) }},
		{"one that says nothing", "it has ended without an answer", func() { require.NoError(t, os.Symlink("/bin/true", h.role.Next)) }},
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
	h.until("those that were refused are reaped", func() bool {
		for _, pid := range (&childLister{self: h.cmd.Process.Pid}).scan() {
			if stat, err := readStat(pid); err == nil && stat.dead() {
				return false
			}
		}
		return true
	})
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Remove(h.role.Next))
	require.NoError(t, os.Symlink(self, h.role.Next))
	// The next one writes nothing that the first one reads.
	h.versions(2, 2, "1.2")
	h.upgrade()
	h.versions(1, 1, "1.0")
	assert.Contains(t, h.refused(), "clusterrun 1.0 reads records of what is handed over up to version 1, and clusterrun 1.2 writes them from version 2 on")
	assert.False(t, gone(p.PID))
	h.stop(sigKILL, 0)
	assert.Equal(t, -sigKILL, h.wait("t", 0).Code)
}

// A supervisor that is killed when the other program has been executed leaves nothing behind, as
// always.
func TestSupervisorKilledAfterAnotherProgramTookOver(t *testing.T) {
	h := newUpgradable(t, nil)
	p := h.sh("t", 0, `exec sleep 1000`)
	h.upgrade()
	require.NoError(t, h.cmd.Process.Kill())
	require.Error(t, h.ended())
	h.until("the process is gone", func() bool { return gone(p.PID) })
	h.start()
	assert.True(t, h.wait("t", 0).Lost)
}

// A side that is frozen, a disk that is full, and a run that is being released.
func TestUpgradeOfWhatIsStuck(t *testing.T) {
	h := newUpgradable(t, nil)
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
	reply, err := h.client.Release(h.ctx(), ReleaseRequest{Run: testRun, Stops: Stops{Stop: Stop{Signal: sigTERM, Grace: long}}})
	require.NoError(t, err)
	require.Len(t, reply.Processes, 1)
	assert.Equal(t, -sigKILL, reply.Processes[0].Exit.Code)
	h.until("it is archived", func() bool {
		found, err := filepath.Glob(filepath.Join(h.role.Dir, releasedDir, "*.jsonl"))
		return err == nil && len(found) == 1
	})
}

// What nohup has ignored each program knows, though they listen for it.
func TestIgnoredSignalsAreHandedOver(t *testing.T) {
	h := newUpgradable(t, func(r *role) { r.Nohup = true })
	h.upgrade()
	h.upgrade()
	assert.Equal(t, 3, h.count("ignored [hangup]"))
}

// A side that cannot be started ends who starts anew, and not who has processes of another program.
func TestFirstSideFails(t *testing.T) {
	for name, handed := range map[string]*handover{"anew": nil, "taken over": {}} {
		t.Run(name, func(t *testing.T) {
			s := &supervisor{
				cfg: Config{Side: []string{"no argument\x00"}}, state: &State{handed: handed},
				log: zap.NewNop(), fork: newForker(), closing: make(chan struct{}),
			}
			t.Cleanup(s.fork.close)
			started, stop, over := make(chan error, 1), make(chan struct{}), make(chan struct{})
			go func() {
				defer close(over)
				s.keepSide(started, stop)
			}()
			if handed == nil {
				require.Error(t, <-started)
				<-over
				return
			}
			require.NoError(t, <-started)
			select {
			case <-over:
				require.Fail(t, "it is not started again")
			case <-time.After(2 * sideBackoffFirst):
			}
			s.close(false, false)
			close(stop)
			<-over
		})
	}
}
