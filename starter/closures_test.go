package starter_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The first client that opens a run's queue uses the settings in the run's spec, even from
// outside the run. It waits while the server is away.
func TestQueueIsOpenedWithTheSettingsOfTheRun(t *testing.T) {
	for name, test := range map[string]struct {
		spec string
		env  string
		want closure.QueueInput
	}{
		"none":         {`{}`, "", closure.QueueInput{}},
		"settings":     {`{"closures": {"queue_size": 2, "transient_failures": 5}}`, "7", closure.QueueInput{QueueSize: 2, TransientUnavailable: new(5)}},
		"the variable": {`{"tasks": [{"type": "worker"}]}`, "7", closure.QueueInput{TransientUnavailable: new(7)}},
		"a later spec": {`{"field_of_a_later_version": 1, "closures": {"queue_size": 0, "later": 1}}`, "", closure.QueueInput{QueueSize: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(spec.EnvTransientFailures, test.env)
			var in closure.QueueInput
			c := mocks.NewClient(t)
			d := described(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING)
			d.WorkflowExecutionInfo.FirstRunId = "first"
			c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(nil, serviceerror.NewDeadlineExceeded("away")).Once()
			c.On("DescribeWorkflowExecution", mock.Anything, "iris-1", "").Return(d, nil)
			c.On("GetWorkflowHistory", mock.Anything, "iris-1", mock.Anything, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Return(begun(t, test.spec))
			c.On("ExecuteWorkflow", mock.Anything, mock.Anything, closure.QueueType, mock.Anything).
				Run(func(args mock.Arguments) { in = args.Get(3).(closure.QueueInput) }).
				Return(nil, serviceerror.NewWorkflowExecutionAlreadyStarted("ended", "", "")).Once()
			c.On("UpdateWorkflow", mock.Anything, mock.Anything).Return(nil, serviceerror.NewNotFound("no queue"))
			q := must.Get(starter.Get(c, "iris-1", "").Calls(t.Context()))(t)
			_, err := q.Sync(t.Context(), closure.SyncRequest{Client: "c"})
			assert.ErrorIs(t, err, closurequeue.ErrRunEnded)
			test.want.Run = spec.RunRef{WorkflowID: "iris-1", RunID: "first"}
			assert.Equal(t, test.want, in)
		})
	}
}

func begun(t *testing.T, spec string) client.HistoryEventIterator {
	input := must.Get(converter.GetDefaultDataConverter().ToPayloads(rawJSON(spec)))(t)
	events := mocks.NewHistoryEventIterator(t)
	events.On("Next").Return(&historypb.HistoryEvent{
		Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: input},
		},
	}, nil)
	return events
}

type rawJSON string

func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }
