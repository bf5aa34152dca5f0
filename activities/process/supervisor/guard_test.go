package supervisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/internal/early"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/tests/must"
)

// guardPID waits for a guard with a process ID other than other.
func (h *host) guardPID(other int) int {
	h.t.Helper()
	guard := 0
	h.until("there is a guard", func() bool {
		pids := must.Get(proc.PIDs())(h.t)
		for _, pid := range pids {
			stat, err := proc.ReadStat(pid)
			if err == nil && stat.PPID == h.cmd.Process.Pid && !stat.Dead() && pid != other && comm(pid) == early.GuardName {
				guard = pid
			}
		}
		return guard != 0
	})
	return guard
}

func comm(pid int) string {
	raw, _ := os.ReadFile(procFile(pid, "comm"))
	return strings.TrimSpace(string(raw))
}

// killTogether kills the supervisor and others so that none of them can react first.
func (h *host) killTogether(others ...int) {
	h.t.Helper()
	pids := append([]int{h.cmd.Process.Pid}, others...)
	for _, sig := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
		for _, pid := range pids {
			require.NoError(h.t, unix.Kill(pid, sig))
		}
	}
	_ = h.ended()
}

const leavesMuch = `
	sh -c 'trap "" TERM HUP; echo $$ >$D/child; exec sleep 1000' &
	setsid sh -c 'setsid sh -c "echo \$\$ >$D/pid; exec sleep 1000" & ' &
	while :; do sleep 1000; done`

// If the supervisor and the side die together, the guard sweeps.
func TestBothKilled(t *testing.T) {
	for way, change := range ways {
		t.Run(way, func(t *testing.T) {
			h := newHost(t, change)
			h.sh("worker-0", 0, leavesMuch)
			pids := []int{h.pidIn("child"), h.pidIn("pid")}
			guard := h.guardPID(0)
			h.killTogether(h.sidePID())
			for _, pid := range append(pids, guard) {
				h.until("all have gone", func() bool { return gone(pid) })
			}
			h.start()
			require.True(t, h.wait("worker-0", 0).Lost)
		})
	}
}

// If the guard dies with them, the next supervisor sweeps.
func TestAllKilled(t *testing.T) {
	h := newHost(t, nil)
	h.sh("worker-0", 0, leavesMuch)
	pids := []int{h.pidIn("child"), h.pidIn("pid")}
	h.killTogether(h.sidePID(), h.guardPID(0))
	for _, pid := range pids {
		require.False(t, gone(pid))
	}
	h.start()
	for _, pid := range pids {
		require.True(t, gone(pid), "swept before anything else")
	}
	require.True(t, h.wait("worker-0", 0).Lost)
}

func TestGuard(t *testing.T) {
	h := newHost(t, nil)
	h.sh("worker-0", 0, "exec sleep 1000")
	guard := h.guardPID(0)
	// A `pkill -f` of our name does not match, and the guard holds nothing that other processes
	// wait for.
	assert.Equal(t, early.GuardName+"\x00", must.Read(t, procFile(guard, "cmdline")))
	stat := must.Get(proc.ReadStat(guard))(t)
	assert.Equal(t, guard, stat.Session)
	assert.Equal(t, must.Read(t, procFile(h.cmd.Process.Pid, "oom_score_adj")), must.Read(t, procFile(guard, "oom_score_adj")))
	files := must.Get(os.ReadDir(procFile(guard, "fd")))(t)
	for _, f := range files {
		to := must.Get(os.Readlink(procFile(guard, "fd/"+f.Name())))(t)
		if to != os.DevNull && !strings.HasPrefix(to, "/sys/fs/cgroup/") && !strings.HasPrefix(to, "anon_inode:") {
			assert.Fail(t, "besides those of Go's runtime it has a descriptor", to)
		}
	}

	// It survives the end of a session.
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM} {
		require.NoError(t, unix.Kill(guard, sig))
	}
	// It is idle while the supervisor lives.
	require.NoError(t, unix.Kill(guard, unix.SIGCHLD))
	require.False(t, gone(guard))

	require.NoError(t, unix.Kill(guard, unix.SIGKILL))
	second := h.guardPID(guard)
	h.until("the first one is reaped", func() bool { _, err := proc.ReadStat(guard); return err != nil })
	h.stop(sigTERM, long)
	require.Equal(t, ReasonTerminate, h.wait("worker-0", 0).Reason)
	require.False(t, gone(second))
	require.NoError(t, h.cmd.Process.Signal(unix.SIGTERM))
	require.NoError(t, h.ended())
	require.True(t, gone(second), "it ends with the supervisor")
}

func procFile(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }
