package starter_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Barriers lists the barriers of the latest execution of the run, without those that an earlier
// run with the same ID has left. If a round has no worker, its ID gives name, round and
// generation.
func TestBarriersOfTheRunItself(t *testing.T) {
	c := mocks.NewClient(t)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(described(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING), nil)
	c.On("QueryWorkflow", mock.Anything, mock.Anything, "", mock.Anything).Return(nil, context.DeadlineExceeded)
	c.On("GetWorkflowHistory", mock.Anything, "iris-1", "execution", false, mock.Anything).Return(historyOf(t, validSpec()))
	id := spec.BarrierID(spec.RunRef{WorkflowID: "iris-1", RunID: "execution", Generation: 2}, "end of epoch/1", 6)
	c.On("ListWorkflow", mock.Anything, mock.MatchedBy(func(r *workflowservice.ListWorkflowExecutionsRequest) bool {
		return assert.Contains(t, r.GetQuery(), "STARTS_WITH 'iris-1/barrier/execution/'")
	})).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{
		{Execution: &commonpb.WorkflowExecution{WorkflowId: id}},
	}}, nil)
	barriers, err := starter.Get(c, "iris-1", "").Barriers(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []starter.Barrier{{
		Name: "end of epoch/1", Round: 7, Generation: 2, WorkflowID: id, Unanswered: true,
		Waiting: []spec.BarrierWaiter{}, Missing: []starter.MissingTask{},
	}}, barriers)
}
