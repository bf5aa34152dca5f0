package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// serveOn starts a run with a task that serves on each host.
func (f *fixture) serveOn(s spec.RunSpec, addresses ...string) client.WorkflowRun {
	f.t.Helper()
	g := f.serving("worker", len(addresses))
	g.Count, g.Addresses = nil, addresses
	s.Tasks = []spec.TaskGroup{g}
	return f.start(&s)
}

// callers returns the number of calls of squares that each task has noted.
func (f *fixture) callers() map[string]int {
	b, err := os.ReadFile(filepath.Join(f.dir, "calls"))
	require.NoError(f.t, err)
	n := map[string]int{}
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); fields[0] == "square" {
			n[fields[2]]++
		}
	}
	return n
}

// Closures are spread over the hosts. If a host is gone for good, the other calls its closures
// once its leases have been silent for long enough.
func TestClosuresOnTwoHosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	b := f.StartWorker(t, "--host-name", "host-b")
	run := f.serveOn(spec.RunSpec{}, "host-a:28411", "host-b:28412")
	c := f.coordinator(run)
	f.awaitServing(c, 2)
	f.squares(c, 1000, 1000, 0.002).check(c)
	spread := f.callers()
	// How evenly is a matter of how busy the machine is.
	assert.Greater(t, spread["worker-0"], 50, spread)
	assert.Greater(t, spread["worker-1"], 50, spread)

	// The second host has two closures that do not end, and others behind them.
	first := scheduleCall(t, c, closure.Options{Task: "worker-1"}, "where")
	fetched[[]any](t, first)
	held := schedule(t, c, "hold", "gone")
	held2 := schedule(t, c, "hold", "gone")
	f.called("hold gone", 2)
	s := f.squares(c, 5000, 200, 0)
	require.NoError(t, c.Queue().Flush(bounded(t)))
	b.KillWithSide()
	for _, pid := range f.servers("worker-1") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	killed := time.Now()
	touch(t, f, "gone")
	s.check(c)
	for _, v := range []*clustercoordinator.RemoteValue{held, held2} {
		assert.Equal(t, "gone", fetched[string](t, v))
	}
	t.Logf("called by the other host within %s", time.Since(killed).Round(time.Second))
	assert.Equal(t, 3, f.calls()["hold gone"])
	f.squares(c, 7000, 100, 0).check(c)

	require.NoError(t, f.client.TerminateWorkflow(t.Context(), run.GetID(), "", "test"))
	assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, awaitClosed(t, f.client, c.Queue().ID()))
}

// Each generation of a group serves the same queue, even if the run continues as new between
// two of them. Closures that no generation called stay in the queue.
func TestGenerationsServeOneQueue(t *testing.T) {
	takesLong(t)
	t.Parallel()
	s := harness.StartDevServer(t, "limit.historyCount.suggestContinueAsNew=40")
	f := fixtureOn(t, s)
	run := f.start(&spec.RunSpec{RestartScope: spec.RestartScopeGroup, Tasks: []spec.TaskGroup{f.serving("worker", 2)}})
	c := f.coordinator(run)
	f.awaitServing(c, 2)
	executions := map[string]bool{}
	for round := range 5 {
		f.squares(c, 1000*(round+1), 300, 0.001).check(c)
		d, err := f.client.DescribeWorkflowExecution(t.Context(), run.GetID(), "")
		require.NoError(t, err)
		executions[d.GetWorkflowExecutionInfo().GetExecution().GetRunId()] = true
		release := fmt.Sprintf("generation-%d", round)
		held := schedule(t, c, "hold", release)
		f.called("hold "+release, 1)
		waiting := f.squares(c, 1000*(round+1)+500, 50, 0)
		before := f.servers("worker-0")
		require.Len(t, before, 1)
		require.NoError(t, syscall.Kill(before[0], syscall.SIGKILL))
		touch(t, f, release)
		assert.Equal(t, release, fetched[string](t, held))
		waiting.check(c)
		harness.Eventually(t, "the next generation serves", func() bool {
			now := f.servers("worker-0")
			return len(now) == 1 && now[0] != before[0] && len(f.status(c).Workers) == 2
		})
	}
	assert.Greater(t, len(executions), 1, "the run continued as new")
	latest := f.client.GetWorkflow(t.Context(), run.GetID(), "")
	f.update(latest, spec.UpdateTerminateAll, spec.TerminateAllRequest{})
	f.result(latest)
	assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, awaitClosed(t, f.client, c.Queue().ID()))
}
