package e2e

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// TestRecordStops does the same as TestRecordHistories for runs whose tasks stop together.
func TestRecordStops(t *testing.T) {
	dir := recordDir(t)
	f := newFixture(t)
	record := func(name string, run client.WorkflowRun) {
		f.result(run)
		writeHistory(t, f, run, filepath.Join(dir, name+".json"))
	}
	workers := []spec.TaskGroup{group("worker", 2, upTo)}
	both := []string{"worker-0", "worker-1"}

	run := f.stopRun("stop-together", &spec.RunSpec{Tasks: workers}, both...)
	f.stopping(run, spec.UpdateStopTogether, spec.TogetherRequest{Task: "worker-1", Key: "a", Error: &spec.TogetherError{Kind: "ValueError", Message: "bad batch"}})
	f.stopping(run, spec.UpdateStopTogether, spec.TogetherRequest{Task: "worker-0", Error: &spec.TogetherError{Message: "too late"}})
	f.letEnd("stop-together", both...)
	record("stop-together", run)

	run = f.stopRun("stop-stragglers", &spec.RunSpec{Tasks: workers, StopTogether: spec.StopTogether{Grace: spec.DurationOf(300 * time.Millisecond)}}, both...)
	f.stopping(run, spec.UpdateStopTogether, spec.TogetherRequest{Reason: "enough"})
	record("stop-stragglers", run)

	// The stop is cleared, and a task that failed before is started again.
	run = f.stopRun("stop-cleared", &spec.RunSpec{AutoRestart: true, Tasks: []spec.TaskGroup{
		group("worker", 2, upTo+`; [ $RANK = 0 ] || [ $CLUSTERRUN_RESTART_COUNT != 0 ]`)}}, both...)
	f.stopping(run, spec.UpdateStopTogether, spec.TogetherRequest{})
	f.told(f.worker, run, 1)
	f.letEnd("stop-cleared", "worker-1")
	harness.Eventually(t, "worker-1 has ended", func() bool { return f.state(run, "worker-1") == spec.TaskEnded })
	f.stopping(run, spec.UpdateClearStop, spec.ClearStopRequest{Task: "worker-0"})
	f.told(f.worker, run, 2)
	f.letEnd("stop-cleared", "worker-0")
	record("stop-cleared", run)
}

// stopping makes a request that is answered with how the run stands.
func (f *fixture) stopping(run client.WorkflowRun, u fmt.Stringer, q any) spec.Stopping {
	f.t.Helper()
	var s spec.Stopping
	h, err := f.client.UpdateWorkflow(f.t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: run.GetID(), RunID: run.GetRunID(), UpdateName: u.String(), Args: []any{q}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	require.NoError(f.t, err)
	require.NoError(f.t, h.Get(f.t.Context(), &s))
	return s
}
