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

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// chained is a server that knows executions of a workflow, the last one last.
type chained struct {
	Server
	all []*workflowservice.DescribeWorkflowExecutionResponse
}

func (c *chained) DescribeWorkflowExecution(_ context.Context, _, execution string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	for i, d := range c.all {
		if d.GetWorkflowExecutionInfo().GetExecution().GetRunId() == execution || execution == "" && i == len(c.all)-1 {
			return d, nil
		}
	}
	return nil, serviceerror.NewNotFound("no such execution")
}

func execution(id, first string, status enumspb.WorkflowExecutionStatus, events int64) *workflowservice.DescribeWorkflowExecutionResponse {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{RunId: id}, FirstRunId: first, Status: status, HistoryLength: events,
	}}
}

const (
	running   = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	continued = enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
	completed = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
)

func TestARunIsFoundInItsLastExecution(t *testing.T) {
	for name, c := range map[string]struct {
		all   []*workflowservice.DescribeWorkflowExecutionResponse
		began string
		found string // none: the server does not know it
	}{
		"the only one":                {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("a", "a", running, 9)}, began: "a", found: "a"},
		"it went on":                  {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("a", "a", continued, 9), execution("b", "a", running, 9)}, began: "a", found: "b"},
		"the first one is forgotten":  {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("b", "a", running, 9)}, began: "a", found: "b"},
		"given back in between":       {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("a", "a", continued, 9), execution("b", "a", continued, 9), execution("c", "a", running, 9)}, began: "b", found: "c"},
		"another run has its ID":      {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("a", "a", completed, 9), execution("x", "x", running, 9)}, began: "a", found: "a"},
		"and the server forgot":       {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("x", "x", running, 9)}, began: "a"},
		"and it went on before that":  {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("a", "a", continued, 9), execution("x", "x", running, 9)}, began: "a", found: "a"},
		"there is nothing of that ID": {began: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := describeRun(t.Context(), &chained{all: c.all}, "run", c.began)
			if c.found == "" {
				var notFound *serviceerror.NotFound
				require.ErrorAs(t, err, &notFound)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.found, d.GetWorkflowExecutionInfo().GetExecution().GetRunId())
		})
	}
}

// An execution that goes on with a run lists no task before its first workflow task, which
// the server may put off. Nothing is stopped then.
func TestTasksAreNotStoppedBeforeTheyAreTakenOver(t *testing.T) {
	s := &stopped{listed: listed{processes: []supervisor.Process{living("worker-0", 0, 0)}}}
	h, err := NewHost(Config{Name: "host-a", StateDir: t.TempDir(), Supervisor: s, Log: zap.NewNop()})
	require.NoError(t, err)
	p := &plan{Run: servedRun, Spec: (&spec.RunSpec{}).WithDefaults()}
	before := execution(servedRun.RunID, servedRun.RunID, continued, 4000)
	scheduled := execution("next", servedRun.RunID, running, 5)
	scheduled.PendingWorkflowTask = &workflowpb.PendingWorkflowTaskInfo{}
	for _, last := range []*workflowservice.DescribeWorkflowExecutionResponse{execution("next", servedRun.RunID, running, 1), scheduled} {
		h.Server = &chained{all: []*workflowservice.DescribeWorkflowExecutionResponse{before, last}}
		require.NoError(t, h.reconcile(t.Context(), p))
		require.Empty(t, s.stops)
	}
	h.Server = &chained{all: []*workflowservice.DescribeWorkflowExecutionResponse{before, execution("next", servedRun.RunID, running, 9)}}
	require.NoError(t, h.reconcile(t.Context(), p))
	require.Len(t, s.stops, 1, "it has taken over what it wants")
	assert.Empty(t, s.released)
}

// oneAnswer is a server that gives every heartbeat the same answer.
type oneAnswer struct {
	Server
	err error
}

func (s oneAnswer) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return s.err }

// A server may push a cancellation where it closes an execution that another one goes on
// after. The answer for the attempt says which of the two it is.
func TestAPushedCancellationIsConfirmed(t *testing.T) {
	pushed := temporal.NewCanceledError()
	for _, c := range []struct{ answer, want error }{
		{nil, pushed},
		{temporal.NewCanceledError(), pushed},
		{errors.New("away"), pushed},
		{serviceerror.NewNotFound("workflow execution already completed"), serviceerror.NewNotFound("workflow execution already completed")},
	} {
		l := &lease{Host: stopHost(t, t.TempDir(), newRun(t))}
		l.Server = oneAnswer{err: c.answer}
		answers := make(chan error, 1)
		l.confirm(t.Context(), supervisor.Process{}, pushed, answers)
		assert.Equal(t, c.want, <-answers)
	}
}
