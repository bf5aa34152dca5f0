package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// onHosts runs `clusterrun run` on hosts with only sshd and the program.
type onHosts struct {
	*local
	*harness.SSHHosts
	t *testing.T
}

func newOnHosts(t *testing.T, n int, by ...string) *onHosts {
	t.Helper()
	return &onHosts{t: t, SSHHosts: harness.StartSSHHosts(t, n, by...), local: newLocal(t)}
}

// args returns the arguments for a run that reaches hosts through agent.
func (h *onHosts) args(agent string, args ...string) []string {
	return append([]string{"run", "--dir", h.home, "--launch-agent", agent}, args...)
}

// agent writes a launch agent that calls ssh with a different command, which is $2 in a script.
func (h *onHosts) agent(name, script string) string {
	return h.Write(name, "#!/bin/bash\n"+script+"\n")
}

// left lists the processes and directories that runs left on the hosts.
func (h *onHosts) left() (list []string) {
	for _, host := range h.Hosts {
		list = append(list, h.Processes(host)...)
		dirs, _ := filepath.Glob(filepath.Join(host.State, "hosts", "*"))
		list = append(list, dirs...)
	}
	return list
}

// gone waits until a run has left no processes and directories.
func (h *onHosts) gone() {
	h.t.Helper()
	var left []string
	defer func() {
		if h.t.Failed() {
			h.t.Logf("left: %s", strings.Join(left, "\n"))
		}
	}()
	harness.Eventually(h.t, "all hosts are as they were", func() bool {
		left = h.left()
		return len(left) == 0
	})
}

// running waits until n tasks have printed "running".
func running(t *testing.T, p *harness.Process, n int) {
	t.Helper()
	harness.Eventually(t, "the tasks run", func() bool {
		require.False(t, p.Exited(), "%s", p.Stderr())
		return strings.Count(p.Stdout(), "running\n") == n
	})
}

const untilKilled = `trap "" TERM HUP; echo running; while :; do sleep 1000 & wait; done`

func TestHostsBySSH(t *testing.T) {
	t.Parallel()
	h := newOnHosts(t, 2)
	b := h.Hosts[1]

	// Rank 0 listens, and all ranks' variables lead to it.
	meet := `import os, socket
at = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if os.environ["RANK"] == "0":
    with socket.create_server(at) as s:
        for _ in range(int(os.environ["WORLD_SIZE"]) - 1):
            print("met", s.accept()[0].recv(9).decode())
else:
    while True:
        try:
            socket.create_connection(at).sendall(os.environ["RANK"].encode())
            break
        except ConnectionRefusedError:
            pass
`
	for name, c := range map[string]struct{ hosts, master string }{
		"tasks meet on this machine":  {"localhost,a", h.Address},
		"tasks here meet on another":  {"b,localhost", b.Address},
		"this machine by its address": {h.Address + ",a", h.Address},
	} {
		t.Run(name, func(t *testing.T) {
			stdout := h.ok(h.args(h.Agent, "-H", c.hosts, "--env", "PYTHONUNBUFFERED=1", "--", "python3", "-c", `import os; print("at", os.environ["MASTER_ADDR"])`+"\n"+meet)...)
			assert.Equal(t, 2, strings.Count(stdout, "at "+c.master+"\n"), stdout)
			assert.Contains(t, stdout, "[worker-0]:    met 1\n")
			h.gone()
		})
	}

	t.Run("a connection is killed", func(t *testing.T) {
		p := h.start(h.args(h.Agent, "--on-disconnect", "5s", "-H", "a,b", "--", "bash", "-c", untilKilled)...)
		running(t, p, 2)
		for _, pid := range harness.Children(p.Process.Pid) {
			if strings.Contains(harness.Cmdline(pid), "ssh ") && strings.Contains(harness.Cmdline(pid), " b ") {
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
		}
		harness.Eventually(t, "the processes on b are gone", func() bool { return len(h.Processes(b)) == 0 })
		// The run gives up b only when its processes there must be gone. Users need not wait for
		// that.
		for _, s := range []struct {
			signal syscall.Signal
			said   string
		}{{syscall.SIGINT, "got SIGINT: stopping"}, {syscall.SIGTERM, "got SIGTERM: killing"}} {
			p.Kill(s.signal)
			harness.Eventually(t, s.said, func() bool { return strings.Contains(p.Stderr(), s.said) })
		}
		p.Kill(syscall.SIGINT)
		assert.Equal(t, 130, p.ExitCode())
		assert.Regexp(t, `host b: ssh: signal: killed; its processes stop when it detects this, after at most 5s`, p.Stderr())
		assert.Contains(t, p.Stderr(), "the output of host b is incomplete: its connection was closed")
		h.gone()
	})

	t.Run("files are shipped", func(t *testing.T) {
		dir := job(t)
		stdout, stderr := h.succeeds("run", "--launch-agent", h.Agent, "--ship", dir, "-H", "a,b,localhost", "--", "./run.sh")
		for _, host := range h.Hosts {
			assert.Contains(t, stdout, "hello from "+host.Name+" in "+host.State)
			assert.Contains(t, stderr, "to host "+host.Name)
		}
		assert.Equal(t, 3, strings.Count(stdout, "hello from "))
		h.gone()
	})

	// One signal, or SIGKILL, stops a command that is waiting for hosts, together with its agents.
	t.Run("waiting for hosts is stopped", func(t *testing.T) {
		pids := filepath.Join(h.home, "pids")
		hang := h.agent("hang", `echo $$ >> `+pids+`; exec sleep 1000`)
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
			require.NoError(t, os.RemoveAll(pids))
			p := h.start(h.args(hang, "-H", "a", "--", "true")...)
			harness.Eventually(t, "the hosts that are waited for are named", func() bool { return strings.Contains(p.Stderr(), "waiting for a (hang)") })
			p.Kill(signal)
			assert.Equal(t, 128+int(signal), p.ExitCode())
			b := must.Get(os.ReadFile(pids))(t)
			for _, pid := range strings.Fields(string(b)) {
				harness.Eventually(t, "the agent is gone", func() bool {
					_, err := os.Stat("/proc/" + pid)
					return err != nil
				})
			}
		}
	})

	// A host that is cut off stops its processes although requests cannot reach it, and the command
	// reports the loss.
	t.Run("a host is cut off", func(t *testing.T) {
		// ssh gives up after 12 s without an answer instead of 30 s.
		p := h.start(h.args(h.Agent+" -o ServerAliveInterval=2", "--on-disconnect", "5s", "-H", "a,b", "--", "bash", "-c", "echo running; exec sleep 4711")...)
		running(t, p, 2)
		isTask := func(line string) bool { return strings.HasSuffix(line, "sleep 4711") }
		require.True(t, slices.ContainsFunc(h.Processes(b), isTask))
		h.Cut(b)
		harness.Eventually(t, "the task on b is stopped", func() bool { return !slices.ContainsFunc(h.Processes(b), isTask) })
		harness.Eventually(t, "ssh gives up", func() bool { return strings.Contains(p.Stderr(), "host b: ssh: ") })
		assert.Regexp(t, `host b: ssh: Timeout, server .* not responding`, p.Stderr())
		p.Kill(syscall.SIGKILL)
		harness.Eventually(t, "nothing is left on a", func() bool { return len(h.Processes(h.Hosts[0])) == 0 })
	})
}
