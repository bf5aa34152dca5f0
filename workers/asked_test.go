package workers

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
)

// The time is known from before the server hands out an activity until it receives the answer or no
// longer wants one.
func TestWhenTheServerWasAsked(t *testing.T) {
	var a askedTimes
	// called lets a call through to a server that gives one answer.
	called := func(req, answer proto.Message, fail error) {
		t.Helper()
		reply := answer.ProtoReflect().New().Interface()
		err := a.intercept(t.Context(), "", req, reply, nil, func(_ context.Context, _ string, _, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			proto.Merge(reply.(proto.Message), answer)
			return fail
		})
		require.ErrorIs(t, err, fail)
	}
	poll := &workflowservice.PollActivityTaskQueueRequest{}
	called(poll, &workflowservice.PollActivityTaskQueueResponse{}, nil)
	assert.Zero(t, a.at(nil), "a poll that brought nothing")
	called(poll, &workflowservice.PollActivityTaskQueueResponse{TaskToken: []byte("a")}, nil)
	asked := a.at([]byte("a"))
	assert.Positive(t, asked)
	assert.LessOrEqual(t, asked, supervisor.BootNanos())

	answer := &workflowservice.RespondActivityTaskCompletedRequest{TaskToken: []byte("a")}
	none := &workflowservice.RespondActivityTaskCompletedResponse{}
	called(answer, none, status.Error(codes.Unavailable, "away"))
	assert.Equal(t, asked, a.at([]byte("a")), "the server has no answer")
	called(answer, none, nil)
	assert.Zero(t, a.at([]byte("a")))

	called(poll, &workflowservice.PollActivityTaskQueueResponse{TaskToken: []byte("b")}, nil)
	called(&workflowservice.RespondActivityTaskFailedRequest{TaskToken: []byte("b")},
		&workflowservice.RespondActivityTaskFailedResponse{}, status.Error(codes.NotFound, "over"))
	assert.Zero(t, a.at([]byte("b")), "no answer is wanted")

	called(&workflowservice.RespondWorkflowTaskCompletedRequest{}, &workflowservice.RespondWorkflowTaskCompletedResponse{
		ActivityTasks: []*workflowservice.PollActivityTaskQueueResponse{{TaskToken: []byte("eager")}},
	}, nil)
	assert.Positive(t, a.at([]byte("eager")))
}

func TestAnswered(t *testing.T) {
	assert.True(t, answered(serviceerror.NewNotFound("over")))
	assert.True(t, answered(serviceerror.NewInvalidArgument("no token")))
	assert.False(t, answered(serviceerror.NewUnavailable("away")))
	assert.False(t, answered(errors.New("broken pipe")))
}
