package closurequeue

import (
	"context"
	"errors"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// follow starts to follow the history, if it is not followed yet. It must be called before
// anything is sent: otherwise the outcome could be in an execution that is over by then.
func (q *Queue) follow(ctx context.Context) error {
	select {
	case q.following <- struct{}{}:
		defer func() { <-q.following }()
	case <-ctx.Done():
		return ctx.Err()
	case <-q.ctx.Done():
		return errClosed
	}
	if q.followed {
		return nil
	}
	var here Position
	err := q.client.patiently(ctx, "follow", func() (err error) {
		here, err = q.client.Here(ctx)
		return err
	})
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ctx.Err() != nil {
		return errClosed
	}
	q.followed = true
	q.loops.Go(func() {
		if err := q.client.Follow(q.ctx, here, q.told); q.ctx.Err() == nil {
			q.fail(err)
		}
	})
	return nil
}

// told records outcomes from the history.
func (q *Queue) told(some closure.Outcomes) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.wakeIfEnded()
	for _, o := range some.Outcomes {
		if !q.settle(o) && q.sending > 0 {
			q.early.add(o) // the ID of its closure may not have arrived yet
		}
	}
	for _, c := range some.Cancelled {
		q.settleRange(c)
		if q.sending > 0 {
			q.early.cancel(c)
		}
	}
	return nil
}

// awaited are closures that are waited for here. The lock of their [Queue] must be held.
type awaited struct {
	// remotes are those with a known ID and no outcome.
	remotes map[uint64][]*Remote
	// attached counts the closures that join and done wait for.
	attached int
}

// settleRange cancels the awaited closures in a range, which may have many more.
func (a *awaited) settleRange(c closure.Cancelled) {
	if c.Last-c.First < uint64(len(a.remotes)) {
		for id := c.First; id <= c.Last; id++ {
			a.settle(c.Outcome(id))
		}
		return
	}
	for id := range a.remotes {
		if c.Has(id) {
			a.settle(c.Outcome(id))
		}
	}
}

// settle ends a closure for the callers that wait for it here. It returns false if there are
// none.
func (a *awaited) settle(o closure.Outcome) bool {
	waiting, ok := a.remotes[o.ID]
	delete(a.remotes, o.ID)
	for _, r := range waiting {
		r.settle(o)
		if r.attached {
			a.attached--
		}
	}
	return ok
}

// wakeIfEnded wakes those that wait until all closures have ended. mu must be held.
func (q *Queue) wakeIfEnded() {
	if q.attached == 0 {
		q.wake()
	}
}

// expect records that the outcome of a closure is awaited.
func (a *awaited) expect(r *Remote) {
	a.remotes[r.id] = append(a.remotes[r.id], r)
	if r.attached {
		a.attached++
	}
}

// giveUp removes a closure from those that are awaited.
func (a *awaited) giveUp(r *Remote) {
	rest := slices.DeleteFunc(a.remotes[r.id], func(o *Remote) bool { return o == r })
	if a.remotes[r.id] = rest; len(rest) == 0 {
		delete(a.remotes, r.id)
	}
}

// failAll ends all waiting with this error. After the end of the run, closures that are looked up
// are still awaited.
func (a *awaited) failAll(err error) {
	for id, rs := range a.remotes {
		a.remotes[id] = slices.DeleteFunc(rs, func(r *Remote) bool {
			if r.sought && errors.Is(err, ErrRunEnded) {
				return false
			}
			r.fail(err)
			return true
		})
		if len(a.remotes[id]) == 0 {
			delete(a.remotes, id)
		}
	}
	a.attached = 0
}

// look searches for the outcomes of closures that may have ended before they were waited for
// here. Later outcomes arrive by the history. mu must be held.
func (q *Queue) look(ids []uint64) {
	if len(ids) == 0 || q.ctx.Err() != nil {
		return
	}
	q.loops.Go(func() {
		for again := tries; ; {
			found, err := q.client.Find(q.ctx, ids...)
			if err == nil {
				q.settleAll(found)
			}
			if err == nil || again.Sleep(q.ctx) != nil {
				return
			}
		}
	})
}

// settleAll records outcomes that were looked up.
func (q *Queue) settleAll(found map[uint64]closure.Outcome) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.wakeIfEnded()
	for _, o := range found {
		q.settle(o)
	}
}

// early has outcomes that arrived before the IDs of their closures. It is bounded, because
// other clients may have closures called at the same time.
type early struct {
	outcomes  map[uint64]closure.Outcome
	cancelled []closure.Cancelled
	// full reports whether outcomes were dropped for lack of room.
	full bool
}

const maxEarly = 8 * closure.MaxBatch

func (e *early) add(o closure.Outcome) {
	if _, known := e.find(o.ID); known || !e.hasRoom() {
		return
	}
	if e.outcomes == nil {
		e.outcomes = map[uint64]closure.Outcome{}
	}
	e.outcomes[o.ID] = o
}

func (e *early) cancel(c closure.Cancelled) {
	if e.hasRoom() {
		e.cancelled = append(e.cancelled, c)
	}
}

func (e *early) hasRoom() bool {
	if len(e.outcomes)+len(e.cancelled) >= maxEarly {
		*e = early{full: true}
	}
	return !e.full
}

// find returns the first outcome of a closure that arrived.
func (e *early) find(id uint64) (closure.Outcome, bool) {
	o, known := e.outcomes[id]
	if known {
		return o, true
	}
	for _, c := range e.cancelled {
		if c.Has(id) {
			return c.Outcome(id), true
		}
	}
	return o, false
}
