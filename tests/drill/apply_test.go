package drill

import (
	"encoding/json"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// apply causes a fault and returns how to heal it.
func (s *stage) apply(t *testing.T, f Fault, runs []*run) (heal func()) {
	h := s.hosts[f.Host]
	switch f.Kind {
	case KillSide:
		signalTo(h.side(), syscall.SIGKILL)
	case FreezeSide:
		return freeze(h.side())
	case KillSupervisor:
		killed := h.worker
		killed.Kill(syscall.SIGKILL)
		return func() { s.revive(t, h, killed) }
	case LoseHost:
		return s.lose(t, h)
	case GiveNotice:
		s.giveNotice(t, runs)
	case FailCheck: // the check has failed since before the round
		return func() { s.recover(h) }
	case FreezeSupervisor:
		return freeze(h.worker.Process.Pid)
	case KillServer:
		s.server.Kill()
		return s.reviveServer
	case KillServerTwice:
		s.server.Kill()
		return func() {
			s.reviveServer()
			s.server.Kill()
			s.server.Restart()
		}
	case FreezeServer:
		s.server.Signal(syscall.SIGSTOP)
		return func() { s.server.Signal(syscall.SIGCONT) }
	case KillLauncher, FreezeLauncher:
		for _, r := range runs {
			if r.launcher == nil {
				continue
			}
			if f.Kind == FreezeLauncher {
				return freeze(r.launcher.Process.Pid)
			}
			r.stopped = true
			r.launcher.Kill(syscall.SIGKILL)
		}
	case KillMember:
		if living := s.members(); len(living) > 0 {
			pid := living[s.random.IntN(len(living))]
			s.killed[pid] = true
			signalTo(pid, syscall.SIGKILL)
		}
	case Partition:
		end := must.Get(h.link.Cut(f.Cut))(t)
		if !f.Peers {
			return func() { require.NoError(t, end()) }
		}
		endPeers := must.Get(h.peers.Cut(f.Cut))(t)
		return func() {
			require.NoError(t, end())
			require.NoError(t, endPeers())
		}
	case Unplug:
		ip(t, "link", "set", h.wire, "down")
		return func() { ip(t, "link", "set", h.wire, "up") }
	case FillState, FillLogs:
		require.NoError(t, fill(h.fills[f.Kind]))
		return func() { _ = os.Remove(h.fills[f.Kind]) }
	}
	return func() {}
}

// revive restarts a host's worker once the killed one is dead, like systemd. If two faults killed
// it, the first to be healed restarts it.
func (s *stage) revive(t *testing.T, h *host, killed *harness.Process) {
	harness.Eventually(t, "the host worker that was killed is dead", func() bool { return killed.Dead() })
	if h.worker == killed {
		h.start(t)
	}
}

// reviveServer restarts the server. If two faults killed it, the first to be healed restarts it.
func (s *stage) reviveServer() {
	if s.server.Exited() {
		s.server.Restart()
	}
}

func signalTo(pid int, s syscall.Signal) {
	if pid > 1 {
		_ = syscall.Kill(pid, s)
	}
}

// freeze stops a process with SIGSTOP, and returns a function that continues it.
func freeze(pid int) func() {
	signalTo(pid, syscall.SIGSTOP)
	return func() { signalTo(pid, syscall.SIGCONT) }
}

// thaw continues every process that may be frozen, so that it can exit.
func (s *stage) thaw() {
	s.server.Signal(syscall.SIGCONT)
	for _, h := range s.hosts {
		h.worker.Kill(syscall.SIGCONT)
		signalTo(h.side(), syscall.SIGCONT)
	}
}

// command runs a clusterrun command to completion.
func (s *stage) command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	p := s.start(t, args...)
	code = p.ExitCode()
	return code, p.Stdout(), p.Stderr()
}

func (s *stage) start(t *testing.T, args ...string) *harness.Process {
	return harness.Start(t, s.dir, harness.Env(s.dir), append([]string{harness.Clusterrun(t)}, args...)...)
}

func writeJSON(t *testing.T, path string, v any) {
	b := must.Get(json.Marshal(v))(t)
	require.NoError(t, os.WriteFile(path, b, 0o600))
}
