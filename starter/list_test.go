package starter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The server lists runs by when they ended, and the list shows when they started.
func TestTheListIsSortedByTheTimeItShows(t *testing.T) {
	now := time.Now()
	listed := func(id string, started time.Duration, status enumspb.WorkflowExecutionStatus) *workflowpb.WorkflowExecutionInfo {
		return &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id}, Status: status, StartTime: timestamppb.New(now.Add(-started)),
		}
	}
	open, done, ended := enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	c := mocks.NewClient(t)
	pages := func(within func(query string) bool, pages ...[]*workflowpb.WorkflowExecutionInfo) {
		for i, page := range pages {
			token, next := string(rune('0'+i)), []byte(string(rune('1'+i)))
			if i == 0 {
				token = ""
			}
			if i == len(pages)-1 {
				next = nil
			}
			c.On("ListWorkflow", mock.Anything, mock.MatchedBy(func(r *workflowservice.ListWorkflowExecutionsRequest) bool {
				return within(r.Query) && string(r.NextPageToken) == token
			})).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: page, NextPageToken: next}, nil).Once()
		}
	}
	after := func(ago time.Duration) func(string) bool {
		return func(query string) bool {
			_, at, found := strings.Cut(query, "StartTime > '")
			if !found {
				return false
			}
			started, err := time.Parse(time.RFC3339, strings.TrimSuffix(at, "'"))
			require.NoError(t, err)
			return started.Sub(now.Add(-ago)).Abs() < time.Minute
		}
	}
	first := listed("first", 30*time.Minute, open)
	pages(after(time.Hour), []*workflowpb.WorkflowExecutionInfo{first})
	pages(after(24*time.Hour),
		[]*workflowpb.WorkflowExecutionInfo{first, listed("third", 3*time.Hour, done)},
		[]*workflowpb.WorkflowExecutionInfo{listed("fourth", 4*time.Hour, done), listed("second", 2*time.Hour, ended)})
	runs, err := starter.List(t.Context(), c, starter.ListOptions{Limit: 3})
	require.NoError(t, err)
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.RunID)
	}
	assert.Equal(t, []string{"first", "second", "third"}, ids)
	assert.Equal(t, spec.VerdictFailed, runs[1].Verdict, "of a run that was terminated")
	assert.Equal(t, 125, runs[1].ExitCode)
	assert.Equal(t, "terminated", runs[1].Ending)
}
