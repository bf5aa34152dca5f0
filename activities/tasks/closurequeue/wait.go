package closurequeue

import (
	"context"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Join waits until nothing is queued or executing, and until the values of closures scheduled
// here have arrived. If the queue has an error, Join returns it once
// nothing executes.
func (q *Queue) Join(ctx context.Context) error {
	if err := q.Flush(ctx); err != nil {
		return err
	}
	_, err := q.wait(ctx, q.client.Join)
	return err
}

// Done reports whether nothing is queued or executing. Like
// [Queue.Join] it returns the error of the queue.
func (q *Queue) Done(ctx context.Context) (bool, error) {
	q.mu.Lock()
	waiting := q.raised == nil && q.broken == nil && q.passed < q.scheduled
	q.mu.Unlock()
	if waiting { // for room in the queue, perhaps for long
		return false, nil
	}
	return q.wait(ctx, q.client.Done)
}

func (q *Queue) wait(ctx context.Context, ask func(context.Context, closure.WaitRequest) (closure.WaitAnswer, error)) (bool, error) {
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
	request := closure.WaitRequest{Client: q.name, Call: q.call}
	q.mu.Unlock()
	a, err := ask(ctx, request)
	if err != nil {
		return false, err
	}
	if err := q.conclude(ctx, a); err != nil {
		return false, err
	}
	return a.Done, nil
}

// conclude returns the result of a join once the values are here: the queue knows of the end
// of closures a little earlier.
func (q *Queue) conclude(ctx context.Context, a closure.WaitAnswer) error {
	q.mu.Lock()
	q.epoch = max(q.epoch, a.Epoch)
	until := q.passed // later closures belong to the next join
	q.mu.Unlock()
	var err error
	if a.Done || a.Raised != nil {
		err = q.await(ctx, func() bool { return q.attached == 0 || q.passed != until || q.broken != nil })
	}
	if a.Raised != nil { // no other call raises it
		return a.Raised
	}
	return err
}
