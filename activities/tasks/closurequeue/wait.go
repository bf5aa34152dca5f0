package closurequeue

import (
	"context"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// waiter is a call that waits until the closures of the queue have ended, or asks whether they have.
type waiter struct {
	*Queue
	all bool // also for the detached ones
}

// Join waits until nothing but detached closures is queued or executing, and until the values
// of closures scheduled here have arrived. If the queue has an error, Join returns it once
// nothing executes.
func (q *Queue) Join(ctx context.Context) error { return waiter{q, false}.join(ctx) }

// JoinAll is like [Queue.Join], but waits for detached closures, too.
func (q *Queue) JoinAll(ctx context.Context) error { return waiter{q, true}.join(ctx) }

func (w waiter) join(ctx context.Context) error {
	if err := w.Flush(ctx); err != nil {
		return err
	}
	_, err := w.wait(ctx, w.client.Join)
	return err
}

// Done reports whether nothing but detached closures is queued or executing. Like
// [Queue.Join] it returns the error of the queue.
func (q *Queue) Done(ctx context.Context) (bool, error) { return waiter{q, false}.isDone(ctx) }

// AllDone is like [Queue.Done], but includes detached closures.
func (q *Queue) AllDone(ctx context.Context) (bool, error) { return waiter{q, true}.isDone(ctx) }

func (w waiter) isDone(ctx context.Context) (bool, error) {
	w.mu.Lock()
	waiting := w.raised == nil && w.broken == nil && w.passed < w.scheduled
	w.mu.Unlock()
	if waiting { // for room in the queue, perhaps for long
		return false, nil
	}
	return w.wait(ctx, w.client.Done)
}

func (w waiter) wait(ctx context.Context, ask func(context.Context, closure.WaitRequest) (closure.WaitAnswer, error)) (bool, error) {
	w.mu.Lock()
	if err := w.takeRaised(); err != nil {
		w.mu.Unlock()
		return false, err
	}
	if err := w.broken; err != nil {
		w.mu.Unlock()
		return false, err
	}
	w.call++
	request := closure.WaitRequest{Client: w.name, Call: w.call, All: w.all}
	w.mu.Unlock()
	a, err := ask(ctx, request)
	if err != nil {
		return false, err
	}
	if err := w.conclude(ctx, a); err != nil {
		return false, err
	}
	return a.Done, nil
}

// conclude returns the result of a join once the values are here: the queue knows of the end
// of closures a little earlier.
func (w waiter) conclude(ctx context.Context, a closure.WaitAnswer) error {
	w.mu.Lock()
	w.epoch = max(w.epoch, a.Epoch)
	until := w.passed // later closures belong to the next join
	w.mu.Unlock()
	var err error
	if a.Done || a.Raised != nil {
		w.lookBefore(ctx)
		err = w.await(ctx, func() bool { return w.attached == 0 || w.passed != until || w.broken != nil })
	}
	if a.Raised != nil { // no other call raises it
		return a.Raised
	}
	return err
}

// lookBefore looks up the values of closures that were in the queue before under their keys,
// so that the values of those that have ended are here. It does not wait for the others: a
// detached one may continue.
func (w waiter) lookBefore(ctx context.Context) {
	w.mu.Lock()
	var ids []uint64
	for id, rs := range w.remotes {
		if slices.ContainsFunc(rs, func(r *Remote) bool { return r.before }) {
			ids = append(ids, id)
		}
	}
	w.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	found, err := w.client.Find(ctx, ids...)
	if err != nil {
		return // the values arrive by the history, a little later
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.wakeIfEnded()
	for _, o := range found {
		w.settle(o)
	}
}
