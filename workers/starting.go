package workers

import (
	"cmp"
	"context"
	"sync"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// starting delays polling while the queues' run is being started. The server creates a queue at the
// queue's first poll, which would compete with the start. The poll is not needed yet, because the
// answer to the start contains the run's first workflow task.
type starting struct{ queues sync.Map }

// begin delays the polls of a queue until end is called.
func (s *starting) begin(queue string) (end func()) {
	started := make(chan struct{})
	s.queues.Store(queue, started)
	return sync.OnceFunc(func() {
		s.queues.Delete(queue)
		close(started)
	})
}

func (s *starting) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	queue := ""
	switch r := req.(type) {
	case *workflowservice.PollWorkflowTaskQueueRequest:
		queue = cmp.Or(r.GetTaskQueue().GetNormalName(), r.GetTaskQueue().GetName())
	case *workflowservice.PollActivityTaskQueueRequest:
		queue = r.GetTaskQueue().GetName()
	}
	if started, ok := s.queues.Load(queue); ok {
		select {
		case <-started.(chan struct{}):
		case <-ctx.Done():
		}
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}
