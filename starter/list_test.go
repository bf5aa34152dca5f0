package starter_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// The list is sorted by start time, although the server sorts ended runs by end time. List
// requests no more pages than it needs.
func TestTheListIsSortedByTheTimeItShows(t *testing.T) {
	now := time.Now()
	ago := func(hours float64) *timestamppb.Timestamp {
		return timestamppb.New(now.Add(-time.Duration(hours * float64(time.Hour))))
	}
	listed := func(id string, started, ended float64, status enumspb.WorkflowExecutionStatus) *workflowpb.WorkflowExecutionInfo {
		return &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: fmt.Sprint(id, started)}, Status: status, StartTime: ago(started), CloseTime: ago(ended),
		}
	}
	open, done, ended := enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED
	c := mocks.NewClient(t)
	page := func(query, token, next string, runs ...*workflowpb.WorkflowExecutionInfo) {
		c.On("ListWorkflow", mock.Anything, mock.MatchedBy(func(r *workflowservice.ListWorkflowExecutionsRequest) bool {
			return strings.Contains(r.Query+" ", " AND "+query+" ") && string(r.NextPageToken) == token
		})).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: runs, NextPageToken: []byte(next)}, nil).Once()
	}
	page("CloseTime IS NULL", "", "", listed("first", 1, 0, open), listed("fifth", 9, 0, open))
	page("CloseTime IS NOT NULL AND ExecutionStatus != 'ContinuedAsNew'", "", "more", listed("fourth", 5, 1.5, done), listed("third", 3, 2.5, done))
	page("CloseTime IS NOT NULL AND ExecutionStatus != 'ContinuedAsNew'", "more", "even more", listed("second", 2.8, 2.7, ended), listed("sixth", 10, 4, done))
	runs := must.Get(starter.List(t.Context(), c, starter.ListOptions{Limit: 3}))(t)
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.RunID)
	}
	assert.Equal(t, []string{"first", "second", "third"}, ids)
	assert.Equal(t, spec.VerdictFailed, runs[1].Verdict, "of a run that was terminated")
	assert.Equal(t, 125, runs[1].ExitCode)
	assert.Equal(t, "terminated", runs[1].Ending)

	page("CloseTime IS NULL", "", "", listed("first", 1, 0, open), listed("fifth", 9, 0, open))
	page("CloseTime IS NOT NULL AND ExecutionStatus != 'ContinuedAsNew'", "", "", listed("fourth", 5, 1.5, done), listed("third", 3, 2.5, done))
	runs = must.Get(starter.List(t.Context(), c, starter.ListOptions{Limit: 3, OpenFirst: true}))(t)
	ids = nil
	for _, r := range runs {
		ids = append(ids, r.RunID)
	}
	assert.Equal(t, []string{"first", "fifth", "third"}, ids)

	page("CloseTime IS NULL", "", "", listed("hp-3", 1, 0, open))
	page("CloseTime IS NOT NULL AND ExecutionStatus != 'ContinuedAsNew'", "", "", listed("hp-2", 5, 1.5, done), listed("hp-3", 9, 8, done), listed("hp-1", 8, 2.5, done), listed("hq-1", 7, 6, done))
	found := must.Get(cli.Matching(t.Context(), c, "hp-*", cli.AnyRuns))(t)
	assert.Equal(t, []string{"hp-1", "hp-2", "hp-3"}, found, "in the order of their start, the last of each ID")
	page("CloseTime IS NULL", "", "", listed("hp-3", 1, 0, open))
	page("CloseTime IS NOT NULL AND ExecutionStatus != 'ContinuedAsNew'", "", "", listed("hp-2", 5, 1.5, done), listed("hp-3", 9, 8, done))
	found = must.Get(cli.Matching(t.Context(), c, "hp-*", cli.EndedRuns))(t)
	assert.Equal(t, []string{"hp-2"}, found)

	page("CloseTime IS NOT NULL AND ExecutionStatus != 'ContinuedAsNew'", "", "more", listed("late", 2, 1, done), listed("early", 5, 4, done))
	page("CloseTime IS NULL", "", "more", listed("here", 1, 0, open), listed("open", 6, 0, open))
	runs = must.Get(starter.List(t.Context(), c, starter.ListOptions{Since: now.Add(-3 * time.Hour)}))(t)
	require.Len(t, runs, 2)
	assert.Equal(t, "here", runs[0].RunID)
	assert.Equal(t, "late", runs[1].RunID)

	page("CloseTime IS NULL", "", "", listed("ends", 2, 0, open))
	page("CloseTime IS NOT NULL AND ExecutionStatus != 'ContinuedAsNew'", "", "", listed("ends", 2, 0, ended))
	runs = must.Get(starter.List(t.Context(), c, starter.ListOptions{}))(t)
	require.Len(t, runs, 1, "a run that ends in between is one")
	assert.False(t, runs[0].Open)
}

// List uses a run's search attributes, and reads its result only if they are missing.
func TestTheListTakesWhatRunsHaveNoted(t *testing.T) {
	fields := map[string]*commonpb.Payload{}
	for name, value := range map[string]any{
		spec.AttributeVerdict: "timed-out", spec.AttributeCause: "timeout", spec.AttributeExitCode: "124",
		spec.AttributeHost: []string{"a", "b"}, spec.AttributeRestarts: 7, spec.AttributePriority: "2",
	} {
		p := must.Get(converter.GetDefaultDataConverter().ToPayload(value))(t)
		fields[name] = p
	}
	c := mocks.NewClient(t)
	c.On("ListWorkflow", mock.Anything, mock.MatchedBy(func(r *workflowservice.ListWorkflowExecutionsRequest) bool {
		return strings.HasSuffix(r.Query, "IN ('Failed', 'Terminated', 'TimedOut') AND ClusterRunHost = 'a' AND ClusterRunCause = 'timeout'")
	})).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{{
		Execution: &commonpb.WorkflowExecution{WorkflowId: "iris-1"}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_FAILED,
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: fields},
	}}}, nil).Once()
	runs := must.Get(starter.List(t.Context(), c, starter.ListOptions{Failed: true, Host: "a", Cause: "timeout"}))(t)
	require.Len(t, runs, 1)
	r := runs[0]
	assert.Equal(t, spec.VerdictTimedOut, r.Verdict)
	assert.Equal(t, spec.CauseTimeout, r.Cause)
	assert.Equal(t, 124, r.ExitCode)
	assert.Equal(t, []string{"a", "b"}, r.Hosts)
	assert.Equal(t, 7, r.Restarts)
	assert.Equal(t, 2, r.Priority)

	c.On("ListWorkflow", mock.Anything, mock.Anything).
		Return(nil, serviceerror.NewInvalidArgument("invalid query: ClusterRunCause is not a valid search attribute")).Once()
	_, err := starter.List(t.Context(), c, starter.ListOptions{Cause: "oom"})
	assert.ErrorContains(t, err, "the server does not have the search attribute ClusterRunCause; register the attributes with `temporal operator search-attribute create --name ClusterRunOwner --type Keyword ")
}

// The server selects by name and owner, and List among those whose beginning matches a pattern.
func TestTheServerNarrowsTheList(t *testing.T) {
	for _, l := range []struct {
		name, owner, want string
		listed            int
	}{
		{"iris", "", " AND (WorkflowId = 'iris' OR ClusterRunName = 'iris')", 1},
		{"ir?s*", "", " AND (WorkflowId STARTS_WITH 'ir' OR ClusterRunName STARTS_WITH 'ir')", 2},
		{`it's\*`, "", ` AND (WorkflowId STARTS_WITH 'it\'s' OR ClusterRunName STARTS_WITH 'it\'s')`, 0},
		{"*s", "me@here", " AND ClusterRunOwner = 'me@here'", 1},
	} {
		c := mocks.NewClient(t)
		c.On("ListWorkflow", mock.Anything, mock.MatchedBy(func(r *workflowservice.ListWorkflowExecutionsRequest) bool {
			return r.Query == "WorkflowType IN ('ClusterRun', 'Sweep') AND CloseTime IS NULL"+l.want
		})).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: list.Of([]string{"iris", "iris-2", "mnist"}, func(id string) *workflowpb.WorkflowExecutionInfo {
			return &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
		})}, nil).Once()
		runs := must.Get(starter.List(t.Context(), c, starter.ListOptions{Open: true, Name: l.name, Owner: l.owner}))(t)
		assert.Len(t, runs, l.listed, l.name)
	}
}

// Of open runs the list has which tasks are silent, and when one last wrote output.
func TestTheListHasSilentRuns(t *testing.T) {
	payload := func(v any) *commonpb.Payload {
		p := must.Get(converter.GetDefaultDataConverter().ToPayload(v))(t)
		return p
	}
	wrote := time.Unix(1000, 0).UTC()
	beat := func(task string, seconds int) *workflowpb.PendingActivityInfo {
		return &workflowpb.PendingActivityInfo{ActivityId: spec.TaskActivityID(task, 0, 0), HeartbeatDetails: &commonpb.Payloads{Payloads: []*commonpb.Payload{
			payload(spec.Heartbeat{Usage: &spec.LiveUsage{SilentSeconds: seconds}, LastOutput: wrote.Add(-time.Duration(seconds) * time.Second)}),
		}}}
	}
	listed := func(id string) *workflowpb.WorkflowExecutionInfo {
		return &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: id}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
	}
	c := mocks.NewClient(t)
	c.On("ListWorkflow", mock.Anything, mock.Anything).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{
		listed("quiet"), listed("other"),
	}}, nil).Once()
	bounded := mock.MatchedBy(func(ctx context.Context) bool {
		_, is := ctx.Deadline()
		return is
	})
	c.On("DescribeWorkflowExecution", bounded, "quiet", "quiet").Return(&workflowservice.DescribeWorkflowExecutionResponse{PendingActivities: []*workflowpb.PendingActivityInfo{
		beat("worker-1", 700), beat("worker-2", 0), beat("worker-0", 650), {ActivityId: "Release"},
	}}, nil).Once()
	c.On("DescribeWorkflowExecution", bounded, "other", "other").Return(&workflowservice.DescribeWorkflowExecutionResponse{}, nil).Once()
	runs := must.Get(starter.List(t.Context(), c, starter.ListOptions{Open: true, Facts: true}))(t)
	require.Len(t, runs, 2)
	assert.Equal(t, wrote, runs[0].LastOutput, "of the task that is not silent")
	assert.Zero(t, runs[1].LastOutput)
	require.Len(t, runs[0].Facts, 1)
	assert.Equal(t, outcome.FactSilent, runs[0].Facts[0].Kind)
	assert.Equal(t, []string{"worker-0", "worker-1"}, runs[0].Facts[0].Items)
	assert.Contains(t, runs[0].Facts[0].Text, "for 10m50s")
	assert.Empty(t, runs[1].Facts)
}

// A run that Temporal has paused is open.
func TestAPausedRunIsListedAsSuch(t *testing.T) {
	c := mocks.NewClient(t)
	c.On("ListWorkflow", mock.Anything, mock.Anything).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{{
		Execution: &commonpb.WorkflowExecution{WorkflowId: "iris-1", RunId: "1"}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED,
	}}}, nil)
	c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "1").Return(&workflowservice.DescribeWorkflowExecutionResponse{}, nil)
	runs := must.Get(starter.List(t.Context(), c, starter.ListOptions{Open: true, Facts: true}))(t)
	require.Len(t, runs, 1)
	assert.True(t, runs[0].Open)
	assert.Equal(t, outcome.StatePaused, runs[0].State)
}

// A sweep with repeated failed trials is listed once, with its first start.
func TestListHasASweepOnce(t *testing.T) {
	started := time.Date(2026, 1, 31, 12, 0, 0, 122425329, time.UTC)
	try := func(execution string, began time.Time, status enumspb.WorkflowExecutionStatus, memo map[string]*commonpb.Payload) *workflowpb.WorkflowExecutionInfo {
		return &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: "hp", RunId: execution}, Type: &commonpb.WorkflowType{Name: spec.SweepWorkflowType},
			Status: status, StartTime: timestamppb.New(began), Memo: &commonpb.Memo{Fields: memo},
		}
	}
	first := try("1", started.Truncate(time.Microsecond), enumspb.WORKFLOW_EXECUTION_STATUS_FAILED, nil)
	again := map[string]*commonpb.Payload{spec.MemoStarted: payloads(t, started.Format(time.RFC3339Nano)).GetPayloads()[0]}
	second := try("2", started.Add(time.Minute), enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, again)
	other := try("3", started.Add(time.Hour), enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil)
	c := mocks.NewClient(t)
	c.On("ListWorkflow", mock.Anything, mock.MatchedBy(func(r *workflowservice.ListWorkflowExecutionsRequest) bool {
		return strings.Contains(r.Query, "IS NULL")
	})).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{other, second}}, nil)
	c.On("ListWorkflow", mock.Anything, mock.Anything).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{first}}, nil)
	runs := must.Get(starter.List(t.Context(), c, starter.ListOptions{}))(t)
	require.Len(t, runs, 2)
	assert.Equal(t, "3", runs[0].ExecutionID)
	assert.Equal(t, "2", runs[1].ExecutionID)
	assert.True(t, runs[1].Open)
}

// The state of an open run is known from its attributes and its pending activities.
func TestListNamesTheStateOfOpenRuns(t *testing.T) {
	payload := func(v any) *commonpb.Payload { return payloads(t, v).GetPayloads()[0] }
	open := func(id string, hosts ...string) *workflowpb.WorkflowExecutionInfo {
		return &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: id}, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, TaskQueue: "clusterrun",
			SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{
				spec.AttributeHost: payload(hosts), spec.AttributePriority: payload("3"), spec.AttributeTasks: payload(2),
			}},
		}
	}
	activities := map[string][]*workflowpb.PendingActivityInfo{
		"runs":      {{ActivityId: "worker-0"}},
		"queued":    nil,
		"preempted": nil,
		"placed":    {{ActivityId: "1", ActivityType: &commonpb.ActivityType{Name: "Reserve"}}},
		"depends":   {{ActivityId: spec.AfterActivity + "b"}, {ActivityId: spec.AfterActivity + "a"}},
	}
	c := mocks.NewClient(t)
	c.On("ListWorkflow", mock.Anything, mock.Anything).Return(&workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{
		open("runs", "gpu-1"), open("queued", spec.AttributeNone), open("preempted", "gpu-1"), open("placed", spec.AttributeNone), open("depends", spec.AttributeNone),
	}}, nil)
	for id, pending := range activities {
		c.On("DescribeWorkflowExecution", mock.Anything, id, id).Return(&workflowservice.DescribeWorkflowExecutionResponse{PendingActivities: pending}, nil)
	}
	states := func(o starter.ListOptions) map[string]string {
		runs := must.Get(starter.List(t.Context(), c, o))(t)
		found := map[string]string{}
		for _, r := range runs {
			found[r.RunID] = strings.TrimSpace(r.State + " " + strings.Join(r.After, " "))
		}
		return found
	}
	assert.Equal(t, map[string]string{"runs": "running", "queued": "pending", "preempted": "running", "placed": "pending", "depends": "pending"},
		states(starter.ListOptions{Open: true}))
	assert.Equal(t, map[string]string{"runs": "running", "queued": "pending", "preempted": "pending", "placed": "pending", "depends": "waiting a b"},
		states(starter.ListOptions{Open: true, Facts: true}))

	queue := mocks.NewEncodedValue(t)
	queue.On("Get", mock.Anything).Run(func(args mock.Arguments) {
		*args.Get(0).(*[]fleet.Waiting) = []fleet.Waiting{{Position: 1, Run: fleet.Run{WorkflowID: "queued"}}}
	}).Return(nil)
	c.On("QueryWorkflowWithOptions", mock.Anything, mock.Anything).Return(&client.QueryWorkflowWithOptionsResponse{QueryResult: queue}, nil)
	pending := must.Get(starter.GetFleet(c, "").Pending(t.Context()))(t)
	require.Len(t, pending, 2)
	assert.Equal(t, "queued", pending[0].Run.WorkflowID)
	assert.Equal(t, "depends", pending[1].Run.WorkflowID)
	assert.Equal(t, "waiting for a, b", pending[1].Why)
	assert.Equal(t, 2, pending[1].Tasks)
}
