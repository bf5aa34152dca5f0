package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
)

// agentsOn are machines where users type the same torchrun command line.
type agentsOn struct {
	*harness.SSHHosts
	t    *testing.T
	home string
}

// start starts an agent on a host.
func (a *agentsOn) start(host *harness.SSHHost, args ...string) *harness.Process {
	a.t.Helper()
	argv := a.LoggedIn(host, harness.Clusterrun(a.t), "torchrun", "--rdzv-backend", "c10d", "--rdzv-endpoint", "a:29400", "--rdzv-id", "job")
	return harness.Start(a.t, a.home, harness.Env(a.home), append(argv, args...)...)
}

// say is a program that prints its place in the run, and exits when a file appears.
const say = `echo "$TORCHELASTIC_RESTART_COUNT $CLUSTERRUN_HOST $RANK/$WORLD_SIZE"; echo $$ > pid-$CLUSTERRUN_HOST-$LOCAL_RANK; trap "" TERM
until [ -e end ]; do nap; done`

// said waits for an agent to print these lines.
func said(t *testing.T, p *harness.Process, lines ...string) {
	t.Helper()
	harness.Eventually(t, strings.Join(lines, ", "), func() bool {
		require.False(t, p.Exited(), "%s", p.Stderr())
		return !slices.ContainsFunc(lines, func(line string) bool { return !strings.Contains(p.Stdout(), line+"\n") })
	})
}

// pid returns the first process on a host.
func (a *agentsOn) pid(host *harness.SSHHost) int {
	a.t.Helper()
	b := must.Get(os.ReadFile(filepath.Join(a.home, "pid-"+host.Name+"-0")))(a.t)
	pid := must.Get(strconv.Atoi(strings.TrimSpace(string(b))))(a.t)
	return pid
}

// left waits until the run's processes on a host are gone, except the server.
func (a *agentsOn) left(host *harness.SSHHost) {
	a.t.Helper()
	harness.Eventually(a.t, "nothing is left on "+host.Name, func() bool {
		return !slices.ContainsFunc(a.Processes(host), func(line string) bool {
			return !strings.Contains(line, "clusterrun-devserver") && !strings.Contains(line, "clusterrun home-worker")
		})
	})
}

// Agents that meet form one run. They come and go in any order, the run continues with the agents
// present, and all exit when it finishes.
func TestAgents(t *testing.T) {
	t.Parallel()
	a := &agentsOn{SSHHosts: harness.StartSSHHosts(t, 2), t: t, home: t.TempDir()}
	head, other := a.Hosts[0], a.Hosts[1]
	end := filepath.Join(a.home, "end")

	flags := []string{"--nnodes", "1:2", "--nproc-per-node", "2", "--max-restarts", "2", "--shutdown-timeout", "1", "--rdzv-conf", "last_call_timeout=600"}
	elastic := append(slices.Clip(flags), "--no-python", "bash", "-c", harness.Napping(say))
	second := a.start(other, elastic...)
	first := a.start(head, elastic...) // the head comes last
	said(t, first, "0 a 0/4", "0 a 1/4")
	said(t, second, "0 b 2/4", "0 b 3/4")
	second.Kill(syscall.SIGKILL)
	a.left(other)
	said(t, first, "1 a 0/2", "1 a 1/2")

	third := a.start(other, elastic...)
	differs := a.start(other, append(slices.Clip(flags), "--no-python", "true")...)
	assert.Equal(t, 2, differs.ExitCode())
	assert.Contains(t, differs.Stderr(), "this agent was not accepted into the run at a:29400: the script and its arguments: true here, and at the endpoint bash -c exec ")
	require.NoError(t, syscall.Kill(a.pid(head), syscall.SIGKILL))
	said(t, first, "2 a 0/4", "2 a 1/4")
	said(t, third, "2 b 2/4", "2 b 3/4")
	third.Kill(syscall.SIGINT)
	assert.Equal(t, 130, third.ExitCode(), third.Stderr())
	assert.Contains(t, third.Stderr(), "this agent has left run ")
	a.left(other)
	said(t, first, "3 a 0/2", "3 a 1/2")
	require.NoError(t, os.WriteFile(end, nil, 0o644))
	assert.Zero(t, first.ExitCode(), first.Stderr())
	require.NoError(t, os.Remove(end))
}
