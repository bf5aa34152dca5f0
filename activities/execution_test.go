package activities

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func execution(id, first string, status enumspb.WorkflowExecutionStatus, events int64) *workflowservice.DescribeWorkflowExecutionResponse {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{RunId: id}, FirstRunId: first, Status: status, HistoryLength: events,
	}}
}

const running = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING

// An execution that continues a run lists no task before its first workflow task, which the
// server may delay. Until then, nothing is stopped.
func TestTasksAreNotStoppedBeforeTheyAreTakenOver(t *testing.T) {
	s := &stopped{listed: listed{processes: []supervisor.Process{living("worker-0", 0, 0)}}}
	server := &describes{}
	h, err := NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Server: server, Log: zap.NewNop()})
	require.NoError(t, err)
	p := &plan{Run: servedRun, Spec: (&spec.RunSpec{}).WithDefaults()}
	scheduled := execution("next", servedRun.RunID, running, 5)
	scheduled.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{}
	for _, last := range []*workflowservice.DescribeWorkflowExecutionResponse{execution("next", servedRun.RunID, running, 1), scheduled} {
		server.run = last
		require.NoError(t, h.watch.reconcile(t.Context(), p))
		require.Empty(t, s.stops)
	}
	server.run = execution("next", servedRun.RunID, running, 9)
	require.NoError(t, h.watch.reconcile(t.Context(), p))
	require.Len(t, s.stops, 1, "it has taken over what it wants")
	assert.Empty(t, s.released)
}

// oneAnswer is a server that gives every heartbeat the same answer.
type oneAnswer struct {
	Server
	err error
}

func (s oneAnswer) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return s.err }

// A server may push a cancellation when it closes an execution that another execution
// continues. The answer to a heartbeat of the attempt tells the two cases apart.
func TestAPushedCancellationIsConfirmed(t *testing.T) {
	pushed := temporal.NewCanceledError()
	for _, c := range []struct{ answer, want error }{
		{nil, pushed},
		{temporal.NewCanceledError(), pushed},
		{errors.New("away"), pushed},
		{serviceerror.NewNotFound("workflow execution already completed"), serviceerror.NewNotFound("workflow execution already completed")},
	} {
		h := assemble(&core{Config: Config{Name: "host-a", Server: oneAnswer{err: c.answer}}})
		var err error
		h.services, err = taskservices.New(taskservices.Config{StateDir: t.TempDir(), Log: zap.NewNop()})
		require.NoError(t, err)
		t.Cleanup(h.services.Close)
		l := &taskLease{Host: h}
		answers := make(chan error, 1)
		l.confirm(t.Context(), supervisor.Process{}, pushed, answers)
		assert.Equal(t, c.want, <-answers)
	}
}
