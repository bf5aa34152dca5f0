package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// onHosts runs `clusterrun run` on hosts that have only sshd and the program.
type onHosts struct {
	*local
	*harness.SSHHosts
	t *testing.T
}

func newOnHosts(t *testing.T, n int, by ...string) *onHosts {
	t.Helper()
	return &onHosts{t: t, SSHHosts: harness.StartSSHHosts(t, n, by...), local: newLocal(t)}
}

// args returns the arguments of a run that reaches hosts by that agent.
func (h *onHosts) args(agent string, args ...string) []string {
	return append([]string{"run", "--dir", h.home, "--launch-agent", agent}, args...)
}

// agent writes a launch agent that calls ssh with another command: a script has it in $2.
func (h *onHosts) agent(name, script string) string {
	return h.Write(name, "#!/bin/bash\n"+script+"\n")
}

// left lists the processes and directories that runs have left on the hosts.
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
	a, b := h.Hosts[0], h.Hosts[1]

	t.Run("output, environment, and nothing left", func(t *testing.T) {
		const lines = 1000
		script := fmt.Sprintf(`echo env $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE $MASTER_ADDR $CLUSTERRUN_HOST
			echo '"value"' > $CLUSTERRUN_RESULT_FILE
			for i in {1..%d}; do echo out $i; echo err $i >&2; done; printf unfinished`, lines)
		stdout, stderr := h.succeeds(h.args(h.Agent, "--id", "all", "-H", "a:2,b:2", "--", "bash", "-c", script)...)
		for rank := range 4 {
			prefix := fmt.Sprintf("[worker-%d]:    ", rank)
			host := h.Hosts[rank/2].Name
			assert.Contains(t, stdout, fmt.Sprintf("%senv %d/4 %d/2 %d/2 %s %s\n", prefix, rank, rank%2, rank/2, a.Address, host))
			var want strings.Builder
			for i := range lines {
				fmt.Fprintf(&want, "%sout %d\n", prefix, i+1)
			}
			want.WriteString(prefix + "unfinished")
			assert.Equal(t, want.String(), strings.TrimSuffix(strings.Join(keep(stdout, prefix+"out ", prefix+"unf"), ""), "\n"))
			assert.Len(t, keep(stderr, prefix+"err "), lines)
		}
		h.gone()

		logs := h.ok("logs", "all")
		assert.Equal(t, strings.Count(stdout, "\n"), strings.Count(logs, "\n"))
		stdout = h.ok("wait", "--json", "all")
		assert.Contains(t, stdout, `"value"`)
	})

	// Rank 0 listens, and the others reach it by their variables.
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

	t.Run("stdin goes to the first task, or another, wherever it is", func(t *testing.T) {
		for _, c := range []struct{ flags, want string }{
			{"-H a,b", "[worker-0]:    0:1 2 3"},
			{"-H a,localhost --stdin worker-1", "[worker-1]:    1:1 2 3"},
		} {
			p := harness.Start(t, h.home, harness.Env(h.home), "bash", "-c", fmt.Sprintf(
				`seq 3 | %s run --dir . --launch-agent '%s' %s -- bash -c 'echo $RANK:$(cat)'`, harness.Clusterrun(t), h.Agent, c.flags))
			assert.Zero(t, p.ExitCode(), p.Stderr())
			assert.Contains(t, p.Stdout(), c.want+"\n")
			assert.Equal(t, 1, strings.Count(p.Stdout(), ":1 2 3\n"))
		}
		h.gone()
	})

	t.Run("without logs", func(t *testing.T) {
		stdout, stderr := h.succeeds(h.args(h.Agent, "--id", "unkept", "-H", "a,localhost", "--log-dir", "/dev/null", "--", "bash", "-c", "echo shown; echo too >&2")...)
		assert.Contains(t, stdout, "[worker-0]:    shown\n")
		assert.Contains(t, stderr, "[worker-0]:    too\n")
		assert.Len(t, keep(stdout, "shown\n"), 1, "what is here goes straight to the console")
		assert.NoDirExists(t, filepath.Join(h.state(), "logs", "unkept"))
	})

	t.Run("a failure names its host, and its error is here", func(t *testing.T) {
		script := `[ $RANK = 1 ] || exec sleep 1000; echo '{"message": "it broke", "timestamp": 1}' > $CLUSTERRUN_ERROR_FILE; exit 7`
		errorFile := filepath.Join(h.home, "error.json")
		p := harness.Start(t, h.home, harness.Env(h.home, "TORCHELASTIC_ERROR_FILE="+errorFile),
			append([]string{harness.Clusterrun(t)}, h.args(h.Agent, "-H", "a,b", "--", "bash", "-c", script)...)...)
		assert.Equal(t, 7, p.ExitCode())
		assert.Regexp(t, `(?s)worker-1 reported an error: it broke.*worker-1 on b`, p.Stderr())
		assert.FileExists(t, errorFile)
		h.gone()
	})

	t.Run("Ctrl-C", func(t *testing.T) {
		p := h.start(h.args(h.Agent, "--id", "stops", "-H", "a,b", "--", "bash", "-c", harness.Napping(`trap "echo stopped; exit 0" TERM; echo running; while :; do nap; done`))...)
		running(t, p, 2)
		p.Kill(syscall.SIGINT)
		assert.Equal(t, 130, p.ExitCode())
		assert.Equal(t, 2, strings.Count(p.Stdout(), "stopped\n"), p.Stdout())
		h.gone()
	})

	t.Run("the command is killed", func(t *testing.T) {
		p := h.start(h.args(h.Agent, "-H", "a:2,b", "--", "bash", "-c", untilKilled)...)
		running(t, p, 3)
		p.Kill(syscall.SIGKILL)
		h.gone()
	})

	t.Run("a connection is killed", func(t *testing.T) {
		p := h.start(h.args(h.Agent, "--on-disconnect", "5s", "-H", "a,b", "--", "bash", "-c", untilKilled)...)
		running(t, p, 2)
		for _, pid := range harness.Children(p.Process.Pid) {
			if strings.Contains(harness.Cmdline(pid), "ssh ") && strings.Contains(harness.Cmdline(pid), " b ") {
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
		}
		harness.Eventually(t, "the processes on b are gone", func() bool { return len(h.Processes(b)) == 0 })
		// The run gives b up only when no process can be left there. A user need not wait for
		// it.
		for _, s := range []struct {
			signal syscall.Signal
			said   string
		}{{syscall.SIGINT, "got SIGINT: stopping"}, {syscall.SIGTERM, "got SIGTERM: killing"}} {
			p.Kill(s.signal)
			harness.Eventually(t, s.said, func() bool { return strings.Contains(p.Stderr(), s.said) })
		}
		p.Kill(syscall.SIGINT)
		assert.Equal(t, 130, p.ExitCode())
		assert.Regexp(t, `host b: ssh: signal: killed; its processes stop when it notices, at the latest after 5s`, p.Stderr())
		assert.Contains(t, p.Stderr(), "the output of host b is incomplete: its connection has ended")
		h.gone()
	})

	t.Run("the server is killed", func(t *testing.T) {
		p := h.start(h.args(h.Agent, append([]string{"-H", "a,b"}, untilGo(h.local)...)...)...)
		harness.Eventually(t, "the tasks run", func() bool { return strings.Count(p.Stdout(), "started\n") == 2 })
		last := h.server()
		require.NoError(t, syscall.Kill(last.PID, syscall.SIGKILL))
		h.awaitServer(last)
		h.goOn()
		assert.Zero(t, p.ExitCode())
		h.gone()
	})
}

// A host that is cut off stops its processes although no request can reach it, and the command
// reports its loss.
func TestAHostBySSHIsCutOff(t *testing.T) {
	t.Parallel()
	h := newOnHosts(t, 2)
	b := h.Hosts[1]
	// ssh gives up after 12 s without an answer, not after 30 s.
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
}

// keep returns the lines that begin so.
func keep(text string, prefixes ...string) (list []string) {
	for line := range strings.Lines(text) {
		for _, p := range prefixes {
			if strings.HasPrefix(line, p) {
				list = append(list, line)
			}
		}
	}
	return list
}

// Every error of a host is reported in the words of ssh, and nothing is left on the others.
func TestHostsThatCannotBeReached(t *testing.T) {
	t.Parallel()
	h := newOnHosts(t, 2)
	t.Cleanup(h.gone)
	ssh := `exec ` + h.Agent + ` -o BatchMode=yes "$1" `
	old := h.Write("old-clusterrun", "#!/bin/sh\n[ $1 = version ] && echo 'clusterrun 0.1.0, go1.0' || { echo 'clusterrun: there is no command' >&2; exit 2; }\n")
	other := func(program string) string {
		return `"$(printf %s "$2" | sed 's#` + harness.Clusterrun(t) + `#` + program + `#g')"`
	}
	for name, c := range map[string]struct {
		agent, hosts string
		want         []string
	}{
		"unknown host key": {h.Agent + " -o UserKnownHostsFile=/dev/null", "a,b", []string{
			`(?m)host a: ssh: .*Host key verification failed\.$`, `host b: ssh: .*Host key verification failed`}},
		"a password is wanted": {h.Agent + " -o PreferredAuthentications=password", "a", []string{
			`host a: ssh: .*Permission denied`}},
		"no such host, and one that is there": {h.Agent, "a,nobody.invalid", []string{
			`(?m)^clusterrun: host nobody.invalid: ssh: .*Could not resolve hostname nobody.invalid.*\n\z`}},
		"no program": {h.agent("without", ssh+other("/nowhere/clusterrun")), "a", []string{
			`host a: no clusterrun at the path it has here, nor in the PATH of a command of without; install it`}},
		"an old program": {h.agent("old", ssh+other(old)), "a,b", []string{
			`host a: its clusterrun is clusterrun 0\.1\.0, go1\.0, this one is clusterrun .*; install the same version`, `host b: its clusterrun`}},
		"an agent that fails":               {"false", "a", []string{`host a: false: exit status 1`}},
		"no agent":                          {"/nowhere/ssh", "a", []string{`host a: .*/nowhere/ssh: no such file`}},
		"an agent that is no way to a host": {"echo", "a", []string{`host a: echo has ended`}},
		"an agent that hangs on one host": {h.agent("hang", `[ "$1" = b ] && exec sleep 1000; exit 9`), "a,b", []string{
			`clusterrun: waiting for b \(hang\)`, `host a: hang: exit status 9`, `host b: it had not answered when another host had failed`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := h.run(h.args(c.agent, "-H", c.hosts, "--", "bash", "-c", "echo started")...)
			assert.Equal(t, 125, code, stderr)
			assert.Empty(t, stdout)
			stderr = regexp.MustCompile(`clusterrun: the processes have .*\n`).ReplaceAllString(stderr, "")
			for _, want := range c.want {
				assert.Regexp(t, want, stderr)
			}
		})
	}
}

// A command that waits for hosts is stopped by one signal, or by SIGKILL, and its agents with it.
func TestWaitingForHostsIsStopped(t *testing.T) {
	t.Parallel()
	h := newOnHosts(t, 1)
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
}
