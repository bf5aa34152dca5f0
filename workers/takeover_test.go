package workers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	querypb "go.temporal.io/api/query/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A side returns the tasks that a killed side held, each by its kind, but not the tasks that it
// gets itself in the meantime.
func TestWhatAnEarlierSideHeld(t *testing.T) {
	dir := t.TempDir()
	before := newHeldTasks(dir, zap.NewNop())
	before.keep(heldWorkflow, []byte("w"))
	before.keep(heldQueue, []byte("vm:1"))
	for i := range 2 * takeovers {
		before.keep(heldActivity, []byte(fmt.Sprint("a", i)))
	}
	h := newHeldTasks(dir, zap.NewNop())
	inherited := h.inherited()
	h.keep(heldActivity, []byte("new"))
	f := &fakeServer{t: t}
	s := f.side()
	s.Server.Namespace = "mine"
	s.takeOver(t.Context(), inherited)

	assert.Equal(t, []string{h.path(heldActivity, []byte("new"))}, h.inherited())
	activities := map[string]bool{}
	for _, r := range f.told {
		assert.Equal(t, "mine", r.(interface{ GetNamespace() string }).GetNamespace())
		switch r := r.(type) {
		case *workflowservice.RespondActivityTaskFailedRequest:
			activities[string(r.GetTaskToken())] = true
			why := r.GetFailure().GetApplicationFailureInfo()
			assert.False(t, why.GetNonRetryable())
			assert.Equal(t, time.Millisecond, why.GetNextRetryDelay().AsDuration(), "its next attempt is wanted at once")
		case *workflowservice.RespondWorkflowTaskFailedRequest:
			assert.Equal(t, "w", string(r.GetTaskToken()))
		case *workflowservice.ShutdownWorkerRequest:
			assert.Equal(t, "vm:1", r.GetStickyTaskQueue())
		default:
			t.Errorf("the server was told %T", r)
		}
	}
	assert.Len(t, activities, 2*takeovers)
	assert.Len(t, f.told, 2*takeovers+2, "each once")
}

// A request to a server that is away is repeated until the server would have given up itself. A
// request without an answer is not repeated.
func TestTheServerDoesNotTakeBack(t *testing.T) {
	away := serviceerror.NewUnavailable("away")
	for name, c := range map[string]struct {
		fail  []error
		tries int
	}{
		"it takes it":         {nil, 1},
		"it is away":          {[]error{away, away, away}, 4},
		"it wants no answer":  {[]error{serviceerror.NewNotFound("the activity is over")}, 1},
		"it does not know it": {[]error{away, serviceerror.NewInvalidArgument("no token")}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHeldTasks(t.TempDir(), zap.NewNop())
				h.keep(heldActivity, []byte("a"))
				f := &fakeServer{t: t, fail: c.fail}
				f.side().takeOver(t.Context(), h.inherited())
				assert.Len(t, f.told, c.tries)
				assert.Empty(t, h.inherited())
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHeldTasks(t.TempDir(), zap.NewNop())
		h.keep(heldActivity, []byte("a"))
		f := &fakeServer{t: t}
		for range 1000 {
			f.fail = append(f.fail, errors.New("broken pipe"))
		}
		began := time.Now()
		f.side().takeOver(t.Context(), h.inherited())
		assert.Equal(t, giveBackPatience, time.Since(began))
		assert.Greater(t, len(f.told), 10)
		require.Empty(t, h.inherited(), "by then the server knows by itself")
	})
	h := newHeldTasks(t.TempDir(), zap.NewNop())
	h.keep(heldActivity, []byte("a"))
	ending, end := context.WithCancel(t.Context())
	end()
	f := &fakeServer{t: t, fail: []error{away}}
	f.side().takeOver(ending, h.inherited())
	assert.Len(t, h.inherited(), 1, "its successor gives it back")
}

// fakeServer is a Temporal server with a fleet, which records its requests.
type fakeServer struct {
	client.Client
	t *testing.T

	mu sync.Mutex
	// hosts are the hosts of the fleet. If it is nil, there is no fleet.
	hosts []fleet.HostStatus
	// told are the requests, and fail the errors of the first ones.
	told []proto.Message
	fail []error
}

func (f *fakeServer) side() *side {
	return &side{Options: Options{Host: "host-a", Queue: "q"}, log: zap.NewNop(), supervisor: &supervisor.Client{}, client: f}
}

func (f *fakeServer) WorkflowService() workflowservice.WorkflowServiceClient {
	return &fakeService{fakeServer: f}
}

func (f *fakeServer) QueryWorkflowWithOptions(_ context.Context, q *client.QueryWorkflowWithOptionsRequest) (*client.QueryWorkflowWithOptionsResponse, error) {
	if f.hosts == nil {
		return nil, errors.New("the fleet does not answer")
	}
	if q.WorkflowID != "q/fleet" || q.QueryType != spec.QueryHosts {
		f.t.Errorf("it was asked for %s of %s", q.QueryType, q.WorkflowID)
	}
	p, err := converter.GetDefaultDataConverter().ToPayloads(f.hosts)
	return &client.QueryWorkflowWithOptionsResponse{QueryResult: client.NewValue(p)}, err
}

// fakeService is its service.
type fakeService struct {
	workflowservice.WorkflowServiceClient
	fakeServer *fakeServer
}

func (f *fakeService) RespondActivityTaskFailed(_ context.Context, r *workflowservice.RespondActivityTaskFailedRequest, _ ...grpc.CallOption) (*workflowservice.RespondActivityTaskFailedResponse, error) {
	return nil, f.fakeServer.tell(r)
}

func (f *fakeService) RespondWorkflowTaskFailed(_ context.Context, r *workflowservice.RespondWorkflowTaskFailedRequest, _ ...grpc.CallOption) (*workflowservice.RespondWorkflowTaskFailedResponse, error) {
	return nil, f.fakeServer.tell(r)
}

func (f *fakeService) ShutdownWorker(_ context.Context, r *workflowservice.ShutdownWorkerRequest, _ ...grpc.CallOption) (*workflowservice.ShutdownWorkerResponse, error) {
	return nil, f.fakeServer.tell(r)
}

func (f *fakeServer) tell(r proto.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = append(f.told, r)
	if len(f.fail) == 0 {
		return nil
	}
	err := f.fail[0]
	f.fail = f.fail[1:]
	return err
}

// called lets a call through to a server that gives one answer, and returns the kinds of the
// requests that are held then.
func called(t *testing.T, h *heldTasks, req, answer proto.Message, fail error) []string {
	t.Helper()
	reply := answer.ProtoReflect().New().Interface()
	err := h.intercept(t.Context(), "", req, reply, nil, func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		proto.Merge(reply.(proto.Message), answer)
		return fail
	})
	require.ErrorIs(t, err, fail)
	var kinds []string
	for _, file := range h.inherited() {
		kinds = append(kinds, filepath.Ext(file)[1:])
	}
	return kinds
}

// A task from the server is on disk before the side works on it, until the server has its
// answer or no longer wants one.
func TestWhatTheServerGivesIsNoted(t *testing.T) {
	h := newHeldTasks(t.TempDir(), zap.NewNop())
	poll := &workflowservice.PollActivityTaskQueueRequest{}
	assert.Empty(t, called(t, h, poll, &workflowservice.PollActivityTaskQueueResponse{}, nil), "a poll that brought nothing")
	assert.Equal(t, []string{"activity"}, called(t, h, poll, &workflowservice.PollActivityTaskQueueResponse{TaskToken: []byte("a")}, nil))

	asked := h.askedAt([]byte("a"))
	assert.Positive(t, asked)
	assert.LessOrEqual(t, asked, supervisor.BootNanos())

	answer := &workflowservice.RespondActivityTaskCompletedRequest{TaskToken: []byte("a")}
	none := &workflowservice.RespondActivityTaskCompletedResponse{}
	assert.Equal(t, []string{"activity"}, called(t, h, answer, none, status.Error(codes.Unavailable, "away")), "the server has no answer")
	assert.Equal(t, asked, h.askedAt([]byte("a")))
	assert.Empty(t, called(t, h, answer, none, nil))
	assert.Zero(t, h.askedAt([]byte("a")))

	called(t, h, poll, &workflowservice.PollActivityTaskQueueResponse{TaskToken: []byte("b")}, nil)
	assert.Empty(t, called(t, h, &workflowservice.RespondActivityTaskFailedRequest{TaskToken: []byte("b")},
		&workflowservice.RespondActivityTaskFailedResponse{}, status.Error(codes.NotFound, "over")), "nobody wants an answer")

	cached := &workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: &taskqueuepb.TaskQueue{Name: "vm:1", Kind: enumspb.TASK_QUEUE_KIND_STICKY}}
	assert.Equal(t, []string{"queue"}, called(t, h, cached, &workflowservice.PollWorkflowTaskQueueResponse{}, nil))
	assert.Equal(t, []string{"queue"}, called(t, h, cached, &workflowservice.PollWorkflowTaskQueueResponse{
		TaskToken: []byte("q"), Query: &querypb.WorkflowQuery{},
	}, nil), "a query is no task")
	assert.ElementsMatch(t, []string{"queue", "workflow"}, called(t, h, cached, &workflowservice.PollWorkflowTaskQueueResponse{TaskToken: []byte("w")}, nil))
	assert.ElementsMatch(t, []string{"queue", "activity"}, called(t, h, &workflowservice.RespondWorkflowTaskCompletedRequest{TaskToken: []byte("w")},
		&workflowservice.RespondWorkflowTaskCompletedResponse{ActivityTasks: []*workflowservice.PollActivityTaskQueueResponse{{TaskToken: []byte("eager")}}}, nil))
}

// A state directory that cannot be written costs a wait after a kill, and nothing now.
func TestWhatTheServerGivesCannotBeNoted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	h := newHeldTasks(file, zap.NewNop())
	assert.Empty(t, called(t, h, &workflowservice.PollActivityTaskQueueRequest{}, &workflowservice.PollActivityTaskQueueResponse{TaskToken: []byte("a")}, nil))
}

func TestAnswered(t *testing.T) {
	assert.True(t, answered(serviceerror.NewNotFound("over")))
	assert.True(t, answered(serviceerror.NewInvalidArgument("no token")))
	assert.False(t, answered(serviceerror.NewUnavailable("away")))
	assert.False(t, answered(errors.New("broken pipe")))
}
