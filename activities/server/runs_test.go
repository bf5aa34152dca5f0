package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/activities/trust/codec"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// chained is a server with a workflow's executions in order.
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

// GetWorkflowHistory returns an execution's last event, which the next execution continues.
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
		found string // empty if unknown to the server
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

// A run without its owner records that. One that does not accept requests is cancelled.
func TestARunWithoutItsOwner(t *testing.T) {
	for _, refused := range []error{nil, errors.New("no worker")} {
		c := &mocks.Client{}
		c.On("UpdateWorkflow", mock.Anything, mock.MatchedBy(func(o client.UpdateWorkflowOptions) bool {
			q, ok := o.Args[0].(spec.StopRequest)
			return ok && o.UpdateName == "request-stop" && o.FirstExecutionRunID == "first" && strings.Contains(q.Reason, "has exited")
		})).Return(&mocks.WorkflowUpdateHandle{}, refused)
		if refused != nil {
			c.On("CancelWorkflowWithOptions", mock.Anything, client.CancelWorkflowOptions{WorkflowID: "run", FirstExecutionRunID: "first"}).Return(nil)
		}
		s := &Server{}
		s.Connect(c)
		require.NoError(t, s.CancelRun(t.Context(), "run", "first"))
		c.AssertExpectations(t)
	}
}

// A refusal by the run or its server is final, and reports why.
func TestRefusals(t *testing.T) {
	var refused *taskservices.RefusedError
	for want, err := range map[string]error{
		"the run is ending, and its tasks are being stopped": temporal.NewNonRetryableApplicationError("the run is ending, and its tasks are being stopped", "Refused", nil),
		"the run has ended": serviceerror.NewNotFound("workflow execution already completed"),
		"the Temporal server refused it: limit on the total number of distinct updates": serviceerror.NewFailedPrecondition("limit on the total number of distinct updates"),
		"the Temporal server refused it: no":                                            serviceerror.NewPermissionDenied("no", ""),
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

// Only the server's answer about the task is contact. The SDK returns its own DeadlineExceeded
// when connections are refused.
func TestContactIsAnAnswer(t *testing.T) {
	for _, err := range []error{nil, temporal.NewCanceledError(), activity.ErrActivityPaused, activity.ErrActivityReset} {
		assert.True(t, IsContact(err), "%v", err)
	}
	for _, err := range []error{
		serviceerror.NewDeadlineExceeded("connection refused"), serviceerror.NewUnavailable("away"), context.DeadlineExceeded,
		context.Canceled, serviceerror.NewPermissionDenied("who are you", ""), serviceerror.NewResourceExhausted(0, "later"),
		serviceerror.NewInternal("oops"), serviceerror.NewNotFound("over"), errors.New("broken pipe"),
	} {
		assert.False(t, IsContact(err), "%v", err)
	}
}

// noChecks are the checks of a host without any.
type noChecks struct{}

func (noChecks) First(context.Context, time.Duration) {}
func (noChecks) Names() []string                      { return nil }
func (noChecks) Failing() []fleet.FailedCheck         { return nil }
func (noChecks) Changed() <-chan struct{}             { return nil }
func (noChecks) Results() []fleet.CheckResult         { return nil }

// If a run releases this host while the host joins, the fleet may receive the release before the
// list of what the host holds. The host rejoins, because otherwise the fleet would keep the stale
// list.
func TestAHostJoinsAgainWhenWhatIsHeldHasChanged(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	handle := &mocks.WorkflowUpdateHandle{}
	handle.On("Get", mock.Anything, mock.Anything).Return(nil)
	c := &mocks.Client{}
	c.On("NewWithStartWorkflowOperation", mock.Anything, mock.Anything, mock.Anything).Return(nil)
	held := []fleet.Holding{{Run: fleet.Run{WorkflowID: "iris", RunID: "1"}, Tasks: 2}}
	var said [][]fleet.Holding
	c.On("UpdateWithStartWorkflow", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		o := args.Get(1).(client.UpdateWithStartWorkflowOptions)
		said = append(said, o.UpdateOptions.Args[0].(fleet.Joined).Holds)
		held = nil // the run releases the host
	}).Return(handle, nil)
	s := &Server{}
	s.Connect(c)
	NewMembership(s, "clusterrun", fleet.Host{Name: "a", Instance: "i"}, noChecks{}).Keep(ctx,
		func() []fleet.Holding { return held },
		func(err error) {
			assert.NoError(t, err)
			cancel() // the host has joined
		})
	assert.Equal(t, [][]fleet.Holding{{{Run: fleet.Run{WorkflowID: "iris", RunID: "1"}, Tasks: 2}}, nil}, said)
}

// sharing is a server with one workflow, and the iterator over its history.
type sharing struct {
	client.Client
	at    hostapi.Shared
	input *commonpb.Payloads
	err   error
}

func (s *sharing) GetWorkflowHistory(_ context.Context, id, execution string, _ bool, _ enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	if (hostapi.Shared{WorkflowID: id, RunID: execution}) != s.at {
		return &sharing{err: serviceerror.NewNotFound("no such execution")}
	}
	return s
}

func (s *sharing) HasNext() bool { return true }

func (s *sharing) Next() (*historypb.HistoryEvent, error) {
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: s.input},
	}}, s.err
}

func TestReadShared(t *testing.T) {
	at := hostapi.Shared{WorkflowID: "iris/shared/1/1", RunID: "2"}
	want := hostapi.Cluster{Hosts: 2, Members: hostapi.Members{{Type: "worker", Host: "a"}, {Type: "worker", Index: 1, Host: "b"}}}
	input := must.Get(codec.Converter.ToPayloads(want))(t)
	var s Server
	var got hostapi.Cluster
	require.ErrorIs(t, s.ReadShared(t.Context(), at, &got), errNotConnected)
	s.Connect(&sharing{at: at, input: input})
	require.NoError(t, s.ReadShared(t.Context(), at, &got))
	assert.Equal(t, want, got)

	err := s.ReadShared(t.Context(), hostapi.Shared{WorkflowID: "iris/shared/1/1", RunID: "3"}, &got)
	require.ErrorContains(t, err, "from workflow iris/shared/1/1: no such execution")
	// A host without the key of an encrypted run names the key.
	input.Payloads[0].Metadata[converter.MetadataEncoding] = []byte(spec.PayloadEncoding)
	var missing *spec.MissingKeyError
	require.ErrorAs(t, s.ReadShared(t.Context(), at, &got), &missing)
}

// watching executes an activity that waits like looks do, on a worker that stops once stop is
// closed, and returns the activity's error.
func watching(t *testing.T, stop chan struct{}, watching func(context.Context) error) error {
	t.Helper()
	e := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	e.SetTestTimeout(time.Minute)
	e.SetWorkerStopChannel(stop)
	e.RegisterActivityWithOptions(watching, activity.RegisterOptions{Name: "look"})
	e.ExecuteWorkflow(func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Hour, HeartbeatTimeout: 10 * time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
		}), "look").Get(ctx, nil)
	})
	require.True(t, e.IsWorkflowCompleted())
	return e.GetWorkflowError()
}

var errNothing = errors.New("nothing")

// Long looks leave slots to the activities that start and stop tasks.
func TestLooksThatLastAreBounded(t *testing.T) {
	for _, test := range []struct {
		others int64
		looks  int
	}{{mostLasting, 1}, {mostLasting - 1, 2}} {
		lasting.Store(test.others)
		defer lasting.Store(0)
		looks := 0
		err := watching(t, make(chan struct{}), func(ctx context.Context) error {
			return watch(ctx, watchEvery, errNothing, func(context.Context) (bool, error) {
				looks++
				return looks == 2, nil
			})
		})
		assert.Equal(t, test.looks, looks, "beside %d", test.others)
		if test.looks == 1 {
			assert.ErrorContains(t, err, errNothing.Error())
		} else {
			assert.NoError(t, err)
		}
		assert.Equal(t, test.others, lasting.Load(), "its slot is free again")
	}
}

// A stopping worker also cancels its activities' contexts. That is not a failed look.
func TestALookEndsWithItsWorker(t *testing.T) {
	for range 20 {
		stop := make(chan struct{})
		err := watching(t, stop, func(ctx context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			return watch(ctx, watchEvery, errNothing, func(context.Context) (bool, error) {
				close(stop)
				cancel()
				return false, nil
			})
		})
		require.ErrorContains(t, err, errNothing.Error())
	}
}

// A look that is no longer needed is cancelled.
func TestALookIsCancelled(t *testing.T) {
	err := watching(t, make(chan struct{}), func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		return watch(ctx, watchEvery, errNothing, func(context.Context) (bool, error) {
			cancel()
			return false, nil
		})
	})
	require.ErrorContains(t, err, context.Canceled.Error())
}
