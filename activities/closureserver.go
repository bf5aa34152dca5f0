package activities

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/closure"
	"github.com/clusterrun/clusterrun/workflows/markdown"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Queues are the queues of closures, as hosts speak with them.
type Queues interface {
	// Tell gives the queue of a run a message, and opens it with that input if there is
	// none. [errQueueClosed]: it has ended.
	Tell(ctx context.Context, in closure.QueueInput, m closure.ServingMessage) error
	// Left is whether the queue of a run is open.
	Left(ctx context.Context, run spec.BarrierRun) (bool, error)
	// Over says how a run has ended, whichever execution it was in; nothing while it
	// has not.
	Over(ctx context.Context, run spec.BarrierRun) (string, error)
	// End tells a queue that its run has ended, and waits until it has taken that
	// in. There may be none.
	End(ctx context.Context, run spec.BarrierRun, over string) error
	// Client is one of the queue of a run. Its error is that there is no connection yet.
	Client(run spec.BarrierRun) (*closurequeue.Client, error)
	// Open opens the queue of a client with that input if there is none.
	Open(ctx context.Context, c *closurequeue.Client, in closure.QueueInput) error
}

var errQueueClosed = errors.New("the queue of closures has ended")

// QueueServer keeps queues as workflows on the Temporal server. Until it is connected
// that counts as away.
type QueueServer struct {
	connection
	queue string
}

// NewQueueServer is one whose workflows have this task queue.
func NewQueueServer(queue string) *QueueServer { return &QueueServer{queue: queue} }

var _ Queues = (*QueueServer)(nil)

// Tell implements [Queues] by signal-with-start.
func (s *QueueServer) Tell(ctx context.Context, in closure.QueueInput, m closure.ServingMessage) error {
	c, err := s.connected()
	if err != nil {
		return err
	}
	id := closure.QueueID(in.Run.WorkflowID, in.Run.RunID)
	_, err = c.SignalWithStartWorkflow(ctx, id, closure.SignalServing, m, client.StartWorkflowOptions{
		ID: id, TaskQueue: s.queue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary:         "closures of run " + markdown.Name(in.Run.WorkflowID),
	}, closure.QueueType, in)
	var closed *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &closed) {
		return errQueueClosed
	}
	return err
}

// End implements [Queues].
func (s *QueueServer) End(ctx context.Context, run spec.BarrierRun, over string) error {
	c, err := s.connected()
	if err != nil {
		return err
	}
	id := closure.QueueID(run.WorkflowID, run.RunID)
	var notFound *serviceerror.NotFound
	switch err := c.SignalWorkflow(ctx, id, "", closure.SignalServing, closure.ServingMessage{Over: over}); {
	case errors.As(err, &notFound):
		return nil
	case err != nil:
		return err
	}
	for {
		// How it ended is not ours to judge.
		err := c.GetWorkflow(ctx, id, "").Get(ctx, nil)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		d, err := c.DescribeWorkflowExecution(ctx, id, "")
		if errors.As(err, &notFound) || err == nil && d.GetWorkflowExecutionInfo().GetCloseTime() != nil {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(askAgain):
		}
	}
}

// Client implements [Queues].
func (s *QueueServer) Client(run spec.BarrierRun) (*closurequeue.Client, error) {
	c, err := s.connected()
	if err != nil {
		return nil, err
	}
	return closurequeue.NewClient(c, run), nil
}

// Open implements [Queues].
func (s *QueueServer) Open(ctx context.Context, c *closurequeue.Client, in closure.QueueInput) error {
	return c.Open(ctx, closurequeue.Options{TaskQueue: s.queue, QueueSize: in.QueueSize, TransientUnavailable: in.TransientUnavailable})
}
