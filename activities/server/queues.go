package server

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

// Queues keeps the queues of closures as workflows on the Temporal server.
type Queues struct {
	server *Server
	queue  string
}

// NewQueues returns queues whose workflows use that task queue.
func NewQueues(s *Server, queue string) *Queues { return &Queues{server: s, queue: queue} }

var _ taskservices.Queues = (*Queues)(nil)

// Tell implements [taskservices.Queues] by signal-with-start.
func (s *Queues) Tell(ctx context.Context, in closure.QueueInput, m closure.ServingMessage) error {
	return s.server.tell(ctx, closure.SignalServing, m, client.StartWorkflowOptions{
		ID: closure.QueueID(in.Run.WorkflowID, in.Run.RunID), TaskQueue: s.queue,
		WorkflowTaskTimeout: closure.TaskTimeout,
		StaticSummary:       "closures of run " + markdown.Name(in.Run.WorkflowID),
	}, closure.QueueType, in, taskservices.ErrQueueClosed)
}

// lookAgain is the time that End waits before it checks again whether a queue has ended.
const lookAgain = 50 * time.Millisecond

// End implements [taskservices.Queues].
func (s *Queues) End(ctx context.Context, run spec.RunRef, over string) error {
	c, err := s.server.connected()
	if err != nil {
		return err
	}
	id := closure.QueueID(run.WorkflowID, run.RunID)
	switch err := c.SignalWorkflow(ctx, id, "", closure.SignalServing, closure.ServingMessage{Over: over}); {
	case servererror.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	for {
		// It does not matter how the queue ended.
		err := c.GetWorkflow(ctx, id, "").Get(ctx, nil)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		d, err := c.DescribeWorkflowExecution(ctx, id, "")
		if servererror.IsNotFound(err) || err == nil && d.GetWorkflowExecutionInfo().GetCloseTime() != nil {
			return nil
		}
		_ = retry.Sleep(ctx, lookAgain)
	}
}

// Client implements [taskservices.Queues].
func (s *Queues) Client(run spec.RunRef) (*closurequeue.Client, error) {
	c, err := s.server.connected()
	if err != nil {
		return nil, err
	}
	q := closurequeue.NewClient(c, run)
	q.TaskQueue = s.queue
	return q, nil
}

// EndClosures is an activity that tells the queue of a run that the run has ended, and waits
// until the queue has ended, too: the host worker of a run on its own host ends with the run.
func (s *Queues) EndClosures(ctx context.Context, in closure.EndInput) error {
	return s.End(ctx, in.Run, in.Over)
}
