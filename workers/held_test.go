package workers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	querypb "go.temporal.io/api/query/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
)

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
