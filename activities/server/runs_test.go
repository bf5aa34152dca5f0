package server

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// chained is a server that knows the executions of a workflow in order.
type chained struct {
	client.Client
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

// GetWorkflowHistory returns the last event of an execution: the next one continues it.
func (c *chained) GetWorkflowHistory(_ context.Context, _, execution string, _ bool, _ enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	next := ""
	for i, d := range c.all[:len(c.all)-1] {
		info, after := d.GetWorkflowExecutionInfo(), c.all[i+1].GetWorkflowExecutionInfo()
		if info.GetExecution().GetRunId() == execution && after.GetFirstRunId() == info.GetFirstRunId() {
			next = after.GetExecution().GetRunId()
		}
	}
	return lastEvent(next)
}

type lastEvent string

func (lastEvent) HasNext() bool { return true }

func (e lastEvent) Next() (*historypb.HistoryEvent, error) {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionContinuedAsNewEventAttributes{
		WorkflowExecutionContinuedAsNewEventAttributes: &historypb.WorkflowExecutionContinuedAsNewEventAttributes{NewExecutionRunId: string(e)},
	}}, nil
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
		found string // empty if the server does not know it
	}{
		"the only one":                {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("a", "a", running, 9)}, began: "a", found: "a"},
		"it went on":                  {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("a", "a", continued, 9), execution("b", "a", running, 9)}, began: "a", found: "b"},
		"the first one is forgotten":  {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("b", "a", running, 9)}, began: "a", found: "b"},
		"another run has its ID":      {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("a", "a", completed, 9), execution("x", "x", running, 9)}, began: "a", found: "a"},
		"and the server forgot":       {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("x", "x", running, 9)}, began: "a"},
		"and it went on before that":  {all: []*workflowservice.DescribeWorkflowExecutionResponse{execution("a", "a", continued, 9), execution("b", "a", continued, 9), execution("c", "a", completed, 9), execution("x", "x", running, 9)}, began: "a", found: "c"},
		"there is nothing of that ID": {began: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Server{}
			s.Connect(&chained{all: c.all})
			d, err := s.DescribeRun(t.Context(), "run", c.began)
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

// A refusal by the run or its server is final, and says why.
func TestRefusals(t *testing.T) {
	var refused *taskservices.RefusedError
	for want, err := range map[string]error{
		"the run is ending, and its tasks are being stopped": temporal.NewNonRetryableApplicationError("the run is ending, and its tasks are being stopped", "Refused", nil),
		"the run has ended": serviceerror.NewNotFound("workflow execution already completed"),
		"the Temporal server refuses it: limit on the total number of distinct updates": serviceerror.NewFailedPrecondition("limit on the total number of distinct updates"),
		"the Temporal server refuses it: no":                                            serviceerror.NewPermissionDenied("no", ""),
	} {
		require.ErrorAs(t, refusal(err), &refused)
		require.EqualError(t, refused, want)
	}
	for _, err := range []error{
		errNotConnected, serviceerror.NewUnavailable("away"), context.DeadlineExceeded, serviceerror.NewResourceExhausted(0, "busy"),
		temporal.NewApplicationError("later", spec.ErrTryAgain),
	} {
		assert.False(t, errors.As(refusal(err), &refused), "%v may pass", err)
	}
}
