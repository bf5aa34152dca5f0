package e2e

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// many is a number of tasks that requires groups: two on one host, or one on each of two hosts.
const many = 252

// largeRun starts a run with enough tasks to require groups, and waits until all processes are
// alive. Each sleeps; the first exits with the code in the file.
func (f *fixture) largeRun(s spec.RunSpec) (*starter.Run, []int) {
	f.t.Helper()
	s.Tasks = []spec.TaskGroup{
		{Type: "first", Command: []string{"/bin/sh", "-c", `until [ -e $DIR/end-$CLUSTERRUN_RESTART_COUNT ]; do sleep 0.1; done; exit $(cat $DIR/end-$CLUSTERRUN_RESTART_COUNT)`}},
		{Type: "worker", Count: ptr(many - 1), Command: []string{"/bin/sh", "-c", "exec sleep 1000"}},
	}
	run := f.start(&s)
	return starter.Get(f.client, run.GetID(), run.GetRunID()), f.sleeping(many - 1)
}

// sleeping waits until n of the tasks' processes are alive, except the first.
func (f *fixture) sleeping(n int) (pids []int) {
	f.t.Helper()
	harness.Eventually(f.t, fmt.Sprintf("%d processes sleep", n), func() bool {
		pids = nil
		for _, pid := range harness.Alive(f.mark) {
			if harness.Cmdline(pid) == "sleep 1000 " {
				pids = append(pids, pid)
			}
		}
		return len(pids) == n
	})
	return pids
}

// endFirst makes the first task exit with the code, after the given number of restarts.
func (f *fixture) endFirst(restarts, code int) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(fmt.Sprintf("%s/end-%d", f.dir, restarts), fmt.Append(nil, code), 0o600))
}

// groups returns a run's open groups.
func (f *fixture) groups(run *starter.Run) []string {
	f.t.Helper()
	d := must.Get(f.client.DescribeWorkflowExecution(f.t.Context(), run.ID, ""))(f.t)
	var ids []string
	for _, c := range d.GetPendingChildren() {
		if c.GetWorkflowTypeName() == spec.GroupWorkflowType && c.GetRunId() != "" {
			ids = append(ids, c.GetWorkflowId())
		}
	}
	return ids
}

func (f *fixture) ended(ids []string) {
	f.t.Helper()
	for _, id := range ids {
		harness.Eventually(f.t, "the group has closed", func() bool {
			d, err := f.client.DescribeWorkflowExecution(f.t.Context(), id, "")
			return err == nil && d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		})
	}
}

// An operator sees and does the same as with few tasks, although one of two hosts loses its host
// worker's Temporal side for a while.
func TestALargeRun(t *testing.T) {
	f, hosts := fleetOf(t, many/2, "a", "b")
	run, pids := f.largeRun(spec.RunSpec{AutoRestart: true, OnFailure: spec.OnFailureContinue})
	require.Len(t, f.groups(run), 2)
	f.endFirst(0, 3)
	var status *starter.Status
	harness.Eventually(t, "the first was started again, and the host workers tell of all", func() bool {
		status = must.Get(run.Status(t.Context()))(t)
		for _, task := range status.Tasks {
			if task.PID == 0 || (task.Type == "first") != (task.Restarts == 1) {
				return false
			}
		}
		return true
	})
	require.Len(t, status.Tasks, many)

	require.NoError(t, syscall.Kill(hosts["b"].Side(), syscall.SIGKILL))
	_, err := starter.Ask(t.Context(), run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-0"}, Signal: "SIGKILL"})
	require.NoError(t, err)
	f.endFirst(1, 0)
	harness.Eventually(t, "the run knows that the first has ended", func() bool {
		status, err := run.Status(t.Context())
		return err == nil && status.Tasks[0].State == spec.TaskEnded
	})
	_, err = starter.Ask(t.Context(), run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "first-0", Command: []string{"sleep", "1000"}})
	require.NoError(t, err)
	again := f.sleeping(many)
	kept := 0
	for _, pid := range pids {
		if slices.Contains(again, pid) {
			kept++
		}
	}
	assert.Equal(t, len(pids)-1, kept, "only the process that was terminated is another one")

	groups := f.groups(run)
	require.NoError(t, run.Cancel(t.Context()))
	r, err := run.Wait(t.Context())
	require.NotNil(t, r, "%v", err)
	assert.Equal(t, spec.VerdictCancelled, r.Verdict, r.Message)
	for _, task := range r.Tasks {
		require.NotNil(t, task.Exit, task.Name)
		assert.Equal(t, spec.CauseOperator, task.Exit.Cause, task.Name)
	}
	f.ended(groups)
	f.alive(0)
}
