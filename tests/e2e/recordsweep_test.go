package e2e

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// TestRecordNotice writes the history of a notice that one receiver takes and another refuses.
func TestRecordNotice(t *testing.T) {
	dir := recordDir(t)
	f := newFixture(t)
	hook := httptest.NewServer(http.NotFoundHandler())
	defer hook.Close()
	run := f.start(&spec.RunSpec{
		Tasks:  []spec.TaskGroup{group("worker", 1, "exit 3")},
		Notify: []spec.Notification{{Command: []string{"true"}}, {Webhook: spec.Variable{Value: hook.URL}}},
	})
	require.Error(t, run.Get(t.Context(), nil))
	notice := f.client.GetWorkflow(t.Context(), spec.NoticeID(run.GetID(), run.GetRunID(), 1), "")
	require.ErrorContains(t, notice.Get(t.Context(), nil), "webhook: ")
	writeHistory(t, f, run, filepath.Join(dir, "notified.json"))
	writeHistory(t, f, notice, filepath.Join(dir, "notice.json"))
}

// TestRecordSweep writes the histories of the first and the last execution of a sweep, one of
// whose trials fails and one of which is stopped, and of a trial.
func TestRecordSweep(t *testing.T) {
	dir := recordDir(t)
	f := fixtureOn(t, harness.StartDevServer(t, "limit.historyCount.suggestContinueAsNew=20"))
	code, _, stderr := f.CLI(t, "submit", "--id", "hp", "--array", "n=0..5", "--at-most", "2", "--env", "DIR="+f.dir, "--", "sh", "-c",
		`echo up > $DIR/up-{n}; [ {n} != 1 ] || sleep 10000; [ {n} != 3 ]`)
	require.Zero(t, code, stderr)
	f.file("up-1")
	f.file("up-4")
	code, _, stderr = f.CLI(t, "stop", "hp.1")
	require.Zero(t, code, stderr)
	code, _, stderr = f.CLI(t, "wait", "hp")
	assert.Equal(t, 1, code, stderr)
	last, err := f.client.DescribeWorkflowExecution(t.Context(), "hp", "")
	require.NoError(t, err)
	first := last.GetWorkflowExecutionInfo().GetFirstRunId()
	require.NotEqual(t, first, last.GetWorkflowExecutionInfo().GetExecution().GetRunId(), "it continued")
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), "hp", first), filepath.Join(dir, "sweep.json"))
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), "hp", ""), filepath.Join(dir, "sweep-last.json"))
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), spec.TrialID("hp", 3), ""), filepath.Join(dir, "trial.json"))
}
