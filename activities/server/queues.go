package server

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Queues keeps closure queues as workflows on the Temporal server.
type Queues struct {
	// Opened is called with the run of a queue that is open.
	Opened func(run runkey.Run)

	server *Server
	queue  string
}

// NewQueues returns queues with workflows on the given task queue.
func NewQueues(s *Server, queue string) *Queues { return &Queues{server: s, queue: queue} }

// Of returns a client of a run's queue. It fails if the server is not connected.
func (s *Queues) Of(run spec.RunRef) (*closurequeue.Client, error) {
	c, err := s.server.connected()
	if err != nil {
		return nil, err
	}
	q := closurequeue.NewClient(c, run)
	q.TaskQueue = s.queue
	return q, nil
}

// EndClosures is an activity that notifies a run's queue that the run has ended, and waits until
// the queue is closed, because a run's own host worker exits with the run.
func (s *Queues) EndClosures(ctx context.Context, in closure.EndInput) error {
	q, err := s.Of(in.Run)
	if err != nil {
		return err
	}
	return q.End(ctx, in.Over)
}

// overTimeout limits the request to the server.
const overTimeout = 10 * time.Second

// ClosuresCheck is an activity that returns when the run has finished. A closure queue uses it to
// detect the end of a run that does not notify the queue, because the run was terminated, its hosts
// are gone, or none of its tasks ever served. ClosuresCheck also reports the queue to this host,
// since a program elsewhere may have opened it.
func (s *Queues) ClosuresCheck(ctx context.Context, in closure.CheckInput) (out closure.CheckOutput, err error) {
	s.Opened(runkey.Run{Namespace: activity.GetInfo(ctx).Namespace, WorkflowID: in.Run.WorkflowID, RunID: in.Run.RunID})
	open := temporal.NewApplicationErrorWithOptions("the run is open", "RunOpen",
		temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
	err = watch(ctx, watchEvery, open, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, overTimeout)
		defer cancel()
		q, err := s.Of(in.Run)
		if err == nil {
			out.Over, err = q.Over(ctx)
		}
		return out.Over != "", err
	})
	return out, err
}
