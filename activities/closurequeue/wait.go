package closurequeue

import (
	"context"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Join waits until nothing is queued or executing, and returns the error of the queue,
// if there is one, once nothing executes any more.
func (q *Queue) Join(ctx context.Context) error {
	_, err := q.waitFor(ctx, spec.UpdateJoin)
	return err
}

// Done says whether nothing is queued or executing, and returns the error of the
// queue like [Queue.Join].
func (q *Queue) Done(ctx context.Context) (bool, error) {
	return q.waitFor(ctx, spec.UpdateDone)
}

func (q *Queue) waitFor(ctx context.Context, name string) (bool, error) {
	if err := q.Flush(ctx); err != nil {
		return false, err
	}
	q.mu.Lock()
	if err := q.takeRaised(); err != nil {
		q.mu.Unlock()
		return false, err
	}
	if err := q.broken; err != nil {
		q.mu.Unlock()
		return false, err
	}
	q.call++
	request := spec.WaitRequest{Client: q.name, Call: q.call}
	q.mu.Unlock()
	a, err := update[spec.WaitAnswer](ctx, q, name, request)
	if err != nil {
		return false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.epoch = max(q.epoch, a.Epoch)
	if a.Raised != nil {
		return a.Done, a.Raised
	}
	return a.Done, nil
}

// CreateResource makes a per-worker resource known, and returns its ID.
func (q *Queue) CreateResource(ctx context.Context, r spec.Resource) (uint64, error) {
	q.mu.Lock()
	q.call++
	request := spec.ResourceRequest{Client: q.name, Number: q.call, Resource: r}
	q.mu.Unlock()
	a, err := update[spec.ResourceAnswer](ctx, q, spec.UpdateCreateResource, request)
	return a.ID, err
}

// Cancel cancels closures, or all.
func (q *Queue) Cancel(ctx context.Context, ids ...uint64) (spec.CancelAnswer, error) {
	return update[spec.CancelAnswer](ctx, q, spec.UpdateCancelClosures, spec.CancelRequest{Closures: ids})
}

// Pause has nothing more be given out.
func (q *Queue) Pause(ctx context.Context, reason string) (spec.QueueStatus, error) {
	return update[spec.QueueStatus](ctx, q, spec.UpdatePauseQueue, spec.PauseRequest{Paused: true, Reason: reason})
}

// Resume takes a pause back.
func (q *Queue) Resume(ctx context.Context) (spec.QueueStatus, error) {
	return update[spec.QueueStatus](ctx, q, spec.UpdatePauseQueue, spec.PauseRequest{})
}
