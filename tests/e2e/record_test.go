package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// TestRecordHistories writes the histories that package workflows replays. It is
// run by hand for each released version:
//
//	CLUSTERRUN_RECORD=$PWD/workflows/testdata/replay/v0.1 go test ./tests/e2e -run TestRecordHistories
func TestRecordHistories(t *testing.T) {
	dir := os.Getenv("CLUSTERRUN_RECORD")
	if dir == "" {
		t.Skip("CLUSTERRUN_RECORD says where to")
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	f := newFixture(t)
	record := func(name string, run client.WorkflowRun) {
		f.result(run)
		writeHistory(t, f, run, filepath.Join(dir, name+".json"))
	}
	sleeping := `echo up > $DIR/$NAME-$CLUSTERRUN_TASK; exec sleep 10000`

	record("success", f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("chief", 1, "true"), group("worker", 2, "true")}}))
	record("failure", f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2, `[ $CLUSTERRUN_RANK = 0 ] && exit 3; sleep 10000`)}}))
	record("chief-grace", f.start(&spec.RunSpec{AutoRestart: true, ChiefGrace: spec.DurationOf(200 * time.Millisecond),
		Tasks: []spec.TaskGroup{group("chief", 1, "sleep 0.2"), group("worker", 2, "sleep 10000")}}))
	record("timeout", f.start(&spec.RunSpec{Timeout: spec.DurationOf(300 * time.Millisecond), Tasks: []spec.TaskGroup{group("worker", 2, "sleep 10000")}}))
	record("max-run-time", f.start(&spec.RunSpec{MaxRunTime: spec.DurationOf(300 * time.Millisecond), Tasks: []spec.TaskGroup{group("worker", 1, "sleep 10000")}}))
	record("placement", f.start(&spec.RunSpec{PlacementTimeout: spec.DurationOf(time.Second), Tasks: []spec.TaskGroup{
		group("worker", 1, "true"), {Type: "ps", Addresses: []string{"nowhere:2222"}, Command: []string{"true"}}}}))
	record("two-hosts", f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{
		group("worker", 1, "true"), {Type: "ps", Addresses: []string{"host-a:28222"}, Command: []string{"true"}}}}))

	run := f.start(&spec.RunSpec{Env: map[string]string{"NAME": "cancel"}, Tasks: []spec.TaskGroup{group("worker", 2, sleeping)}})
	f.file("cancel-worker-1")
	require.NoError(t, f.client.CancelWorkflow(context.Background(), run.GetID(), run.GetRunID()))
	record("cancel", run)

	run = f.start(&spec.RunSpec{Env: map[string]string{"NAME": "requests"}, Tasks: []spec.TaskGroup{group("worker", 2, sleeping)}})
	f.file("requests-worker-0")
	f.file("requests-worker-1")
	f.update(run, spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGCONT"})
	f.update(run, spec.UpdateRestartTask, spec.TaskRequest{Tasks: []string{"worker-0"}})
	f.update(run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-1"}})
	harness.Eventually(t, "worker-1 has ended", func() bool { return f.state(run, "worker-1") == spec.TaskEnded })
	f.update(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "worker-1"})
	f.update(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "evaluator-0", Command: []string{"true"}})
	f.update(run, spec.UpdateTerminateAll, spec.TerminateAllRequest{})
	record("requests", run)

	again := `[ $CLUSTERRUN_GENERATION -gt 1 ] && exit 0; [ $RANK = 1 ] && exit 3; exec sleep 10000`
	record("group", f.start(&spec.RunSpec{RestartScope: spec.RestartScopeGroup, Tasks: []spec.TaskGroup{group("worker", 2, again)}}))
	record("group-two-hosts", f.start(&spec.RunSpec{RestartScope: spec.RestartScopeGroup, Tasks: []spec.TaskGroup{
		group("worker", 2, again), {Type: "ps", Addresses: []string{"host-a:28223"}, Command: []string{"bash", "-c", again}}}}))

	run = f.start(&spec.RunSpec{RestartScope: spec.RestartScopeGroup, Env: map[string]string{"NAME": "group"}, Tasks: []spec.TaskGroup{
		group("worker", 2, `echo up > $DIR/group-$RANK-$CLUSTERRUN_GENERATION; [ $CLUSTERRUN_GENERATION = 1 ] || exec sleep 10000; exit 5`)}, MaxRestarts: ptr(0)})
	f.file("group-0-0")
	f.file("group-1-0")
	f.update(run, spec.UpdateCaptureStacks, spec.StacksRequest{})
	f.update(run, spec.UpdateRestartTask, spec.TaskRequest{Tasks: []string{"worker-0"}, Signal: "SIGINT"})
	record("group-requests", run)
}

// TestRecordContinued writes the history of an execution that continued as new, and
// of the one after it.
func TestRecordContinued(t *testing.T) {
	dir := os.Getenv("CLUSTERRUN_RECORD")
	if dir == "" {
		t.Skip("CLUSTERRUN_RECORD says where to")
	}
	s := harness.StartDevServer(t, "limit.historyCount.suggestContinueAsNew=20")
	f := &fixture{Server: s, t: t, client: s.Client(), dir: t.TempDir(), mark: "E2E_MARK=record"}
	f.worker = s.StartWorker(t)
	run := f.start(&spec.RunSpec{RestartScope: spec.RestartScopeGroup, Timeout: spec.DurationOf(time.Hour), Tasks: []spec.TaskGroup{
		group("worker", 2, `[ $CLUSTERRUN_GENERATION -gt 0 ] && exit 0; [ $RANK = 1 ] && exit 3; exec sleep 10000`)}})
	first := f.client.GetWorkflow(context.Background(), run.GetID(), run.GetRunID())
	f.result(run)
	writeHistory(t, f, first, filepath.Join(dir, "continued.json"))
	writeHistory(t, f, f.client.GetWorkflow(context.Background(), run.GetID(), ""), filepath.Join(dir, "continued-next.json"))
}

func writeHistory(t *testing.T, f *fixture, run client.WorkflowRun, path string) {
	t.Helper()
	history := &historypb.History{}
	it := f.client.GetWorkflowHistory(context.Background(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		require.NoError(t, err)
		history.Events = append(history.Events, e)
	}
	b, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(history)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(b, '\n'), 0o644))
}
