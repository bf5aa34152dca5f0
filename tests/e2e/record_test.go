package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// recordDir is the directory for the histories that package workflows replays. They are
// recorded by `make record`, once for each released version.
func recordDir(t *testing.T) string {
	dir := os.Getenv("CLUSTERRUN_RECORD")
	if dir == "" {
		t.Skip("CLUSTERRUN_RECORD says where to")
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}

// TestRecordHistories writes the histories of runs.
func TestRecordHistories(t *testing.T) {
	dir := recordDir(t)
	f := newFixture(t)
	f.StartWorker(t, "--host-name", "host-b")
	record := func(name string, run client.WorkflowRun) {
		_ = run.Get(t.Context(), nil) // they end in all ways there are
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
	record("refused", f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{
		{Type: "worker", Command: []string{"no-such-program"}}, {Type: "ps", Addresses: []string{"nowhere:2222"}, Command: []string{"true"}}}}))
	record("two-hosts", f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{
		{Type: "worker", Addresses: []string{"host-b"}, Command: []string{"true"}}, {Type: "ps", Addresses: []string{"host-a:28222"}, Command: []string{"true"}}}}))

	run := f.start(&spec.RunSpec{Env: spec.EnvOf(map[string]string{"NAME": "cancel"}), Tasks: []spec.TaskGroup{group("worker", 2, sleeping)}})
	f.file("cancel-worker-1")
	require.NoError(t, f.client.CancelWorkflow(context.Background(), run.GetID(), run.GetRunID()))
	record("cancel", run)

	run = f.start(&spec.RunSpec{Env: spec.EnvOf(map[string]string{"NAME": "requests"}), Tasks: []spec.TaskGroup{group("worker", 2, sleeping)}})
	f.file("requests-worker-0")
	f.file("requests-worker-1")
	f.update(run, spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGCONT"})
	f.update(run, spec.UpdateRestartTask, spec.TaskRequest{Tasks: []string{"worker-0"}})
	f.update(run, spec.UpdateTerminateTask, spec.TaskRequest{Tasks: []string{"worker-1"}})
	harness.Eventually(t, "worker-1 has ended", func() bool { return f.state(run, "worker-1") == spec.TaskEnded })
	f.update(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "worker-1"})
	f.update(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "evaluator-0", Command: []string{"true"}})
	_, err := f.tryUpdate(run, spec.UpdateStartTask, spec.StartTaskRequest{Task: "evaluator-1", Command: []string{"no-such-program"}})
	require.ErrorContains(t, err, "command not found")
	f.update(run, spec.UpdateTerminateAll, spec.TerminateAllRequest{})
	record("requests", run)

	again := `[ $CLUSTERRUN_GENERATION -gt 1 ] && exit 0; [ $RANK = 1 ] && exit 3; exec sleep 10000`
	record("group", f.start(&spec.RunSpec{RestartScope: spec.RestartScopeGroup, Tasks: []spec.TaskGroup{group("worker", 2, again)}}))
	record("group-two-hosts", f.start(&spec.RunSpec{RestartScope: spec.RestartScopeGroup, Tasks: []spec.TaskGroup{
		{Type: "worker", Addresses: []string{"host-b", "host-b"}, Command: []string{"bash", "-c", again}}, {Type: "ps", Addresses: []string{"host-a:28223"}, Command: []string{"bash", "-c", again}}}}))

	run = f.start(&spec.RunSpec{RestartScope: spec.RestartScopeGroup, Env: spec.EnvOf(map[string]string{"NAME": "group"}), Tasks: []spec.TaskGroup{
		group("worker", 2, `echo up > $DIR/group-$RANK-$CLUSTERRUN_GENERATION; [ $CLUSTERRUN_GENERATION = 1 ] || exec sleep 10000; exit 5`)}, MaxRestarts: ptr(0)})
	f.file("group-0-0")
	f.file("group-1-0")
	f.update(run, spec.UpdateCaptureStacks, spec.StacksRequest{})
	f.update(run, spec.UpdateRestartTask, spec.TaskRequest{Tasks: []string{"worker-0"}, Signal: "SIGINT"})
	record("group-requests", run)
}

// TestRecordSettled writes the history of a group whose next generation waits for the return of
// a host that was lost.
func TestRecordSettled(t *testing.T) {
	dir := recordDir(t)
	f := newFixture(t)
	b := f.StartWorker(t, "--host-name", "host-b")
	up := `[ $CLUSTERRUN_GENERATION -gt 0 ] && exit 0; echo up > $DIR/up-$RANK; until [ -e $DIR/fail ]; do nap; done; exit 3`
	run := f.start(&spec.RunSpec{RestartScope: spec.RestartScopeGroup, Tasks: []spec.TaskGroup{
		{Type: "worker", Addresses: []string{"host-a"}, Command: []string{"bash", "-c", up}}, {Type: "ps", Addresses: []string{"host-b:28224"}, Command: []string{"bash", "-c", up}}}})
	f.file("up-0")
	f.file("up-1")
	b.KillWithSide()
	touch(t, f, "fail")
	harness.Eventually(t, "the host is asked to stop its task", func() bool {
		d, err := f.client.DescribeWorkflowExecution(t.Context(), run.GetID(), "")
		return err == nil && slices.ContainsFunc(d.GetPendingActivities(), func(a *workflowpb.PendingActivityInfo) bool {
			return a.GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
		})
	})
	b.Restart()
	f.result(run)
	writeHistory(t, f, run, filepath.Join(dir, "settled.json"))
}

// TestRecordContinued writes the histories of two executions, the first of which continued as
// new: between two generations of a group, and while its tasks were running.
func TestRecordContinued(t *testing.T) {
	dir := recordDir(t)
	f := fixtureOn(t, harness.StartDevServer(t, "limit.historyCount.suggestContinueAsNew=20"))
	record := func(name string, run client.WorkflowRun) {
		first := f.client.GetWorkflow(t.Context(), run.GetID(), run.GetRunID())
		last := f.client.GetWorkflow(t.Context(), run.GetID(), "")
		f.result(last)
		writeHistory(t, f, first, filepath.Join(dir, name+".json"))
		writeHistory(t, f, last, filepath.Join(dir, name+"-next.json"))
	}
	run := f.start(&spec.RunSpec{RestartScope: spec.RestartScopeGroup, Timeout: spec.DurationOf(time.Hour), Tasks: []spec.TaskGroup{
		group("worker", 4, `[ $CLUSTERRUN_GENERATION -gt 0 ] && exit 0; [ $RANK = 1 ] && exit 3; exec sleep 10000`)}})
	record("continued", run)

	run = f.start(&spec.RunSpec{Timeout: spec.DurationOf(time.Hour), Tasks: []spec.TaskGroup{group("worker", 1, `echo up > $DIR/up; exec sleep 10000`)}})
	f.file("up")
	asked := starter.Get(f.client, run.GetID(), run.GetRunID())
	for len(executionsOf(t, f, run.GetID(), run.GetRunID())) == 1 {
		_, err := starter.Ask(t.Context(), asked, spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGCONT"})
		require.NoError(t, err)
	}
	_, err := starter.Ask(t.Context(), asked, spec.UpdateTerminateAll, spec.TerminateAllRequest{})
	require.NoError(t, err)
	record("handed-over", run)
}

// TestRecordGroups writes the histories of a run that groups carry, and of one of those.
func TestRecordGroups(t *testing.T) {
	dir := recordDir(t)
	f := newFixture(t)
	run, _ := f.largeRun(spec.RunSpec{Stop: spec.Stop{Signal: "SIGKILL"}})
	groups := f.groups(run)
	slices.Sort(groups) // the last has two tasks
	f.endFirst(0, 3)
	_, _ = run.Wait(t.Context())
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), run.ID, ""), filepath.Join(dir, "in-groups.json"))
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), groups[len(groups)-1], ""), filepath.Join(dir, "task-group.json"))
}

// unreplayed are fields of events that replaying does not read.
var unreplayed = []protoreflect.Name{"task_id", "user_metadata", "links", "identity", "request_id", "header", "history_size_bytes", "worker_version", "sticky_attributes", "metering_metadata"}

// writeHistory writes a history without the parts that replaying does not read.
func writeHistory(t *testing.T, f *fixture, run client.WorkflowRun, path string) {
	t.Helper()
	history := &historypb.History{}
	it := f.client.GetWorkflowHistory(context.Background(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e := must.Get(it.Next())(t)
		history.Events = append(history.Events, e)
		strip(e.ProtoReflect())
	}
	b := must.Get(temporalproto.CustomJSONMarshalOptions{}.Marshal(history))(t)
	require.NoError(t, os.WriteFile(path, append(b, '\n'), 0o644))
}

// strip removes the fields from a message and from those in it.
func strip(m protoreflect.Message) {
	m.Range(func(d protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case slices.Contains(unreplayed, d.Name()):
			m.Clear(d)
		case d.Message() != nil && !d.IsList() && !d.IsMap():
			strip(v.Message())
		}
		return true
	})
}

// TestRecordLocal writes the history of a group that is restarted on the only host of its run, which
// has the workflow, too.
func TestRecordLocal(t *testing.T) {
	dir := recordDir(t)
	f := newFixture(t)
	f.OK(t, "run", "--id", "local", "-n", "2", "--restart-scope", "group", "--", "bash", "-c", `[ $CLUSTERRUN_GENERATION = 1 ] || exit 3`)
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), "local", ""), filepath.Join(dir, "local.json"))
}

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

// TestRecordNotice writes the history of a run whose webhook refuses its notice.
func TestRecordNotice(t *testing.T) {
	dir := recordDir(t)
	f := newFixture(t)
	hook := httptest.NewServer(http.NotFoundHandler())
	defer hook.Close()
	run := f.start(&spec.RunSpec{
		Tasks:  []spec.TaskGroup{group("worker", 1, "exit 3")},
		Notify: spec.Notification{Webhook: spec.Variable{Value: hook.URL}},
	})
	require.Contains(t, harness.Result(t, run).NoticeFailed, "answered 404")
	writeHistory(t, f, run, filepath.Join(dir, "notified.json"))
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
	f.OK(t, "stop", "hp.1")
	f.Fails(t, 1, "wait", "hp")
	last := must.Get(f.client.DescribeWorkflowExecution(t.Context(), "hp", ""))(t)
	first := last.GetWorkflowExecutionInfo().GetFirstRunId()
	require.NotEqual(t, first, last.GetWorkflowExecutionInfo().GetExecution().GetRunId(), "it continued")
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), "hp", first), filepath.Join(dir, "sweep.json"))
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), "hp", ""), filepath.Join(dir, "sweep-last.json"))
	writeHistory(t, f, f.client.GetWorkflow(t.Context(), spec.TrialID("hp", 3), ""), filepath.Join(dir, "trial.json"))
}
