package workers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// The polls of a queue wait for the start of its run. Other requests do not.
func TestPollsWaitForTheStart(t *testing.T) {
	var s starting
	end := s.begin("mine")
	sent := make(chan any, 1)
	send := func(ctx context.Context, req any) {
		assert.NoError(t, s.intercept(ctx, "", req, nil, nil, func(_ context.Context, _ string, req, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
			sent <- req
			return nil
		}))
	}
	poll := func(queue *taskqueuepb.TaskQueue) any {
		return &workflowservice.PollWorkflowTaskQueueRequest{TaskQueue: queue}
	}
	for _, other := range []any{&workflowservice.StartWorkflowExecutionRequest{}, poll(&taskqueuepb.TaskQueue{Name: "other"})} {
		send(t.Context(), other)
		require.Same(t, other, <-sent)
	}
	for _, own := range []any{
		poll(&taskqueuepb.TaskQueue{Name: "mine"}), poll(&taskqueuepb.TaskQueue{Name: "sticky", NormalName: "mine"}),
		&workflowservice.PollActivityTaskQueueRequest{TaskQueue: &taskqueuepb.TaskQueue{Name: "mine"}},
	} {
		stopped, stop := context.WithCancel(t.Context())
		waits := make(chan struct{})
		go func() {
			defer close(waits)
			send(stopped, own)
		}()
		select {
		case <-sent:
			t.Error("a poll did not wait")
		case <-waits:
			t.Error("a poll was dropped")
		default:
		}
		stop() // a worker that stops does not wait for a start
		<-waits
		require.Same(t, own, <-sent)
	}
	end()
	end()
	send(t.Context(), poll(&taskqueuepb.TaskQueue{Name: "mine"}))
	<-sent
}
