package closurequeue

import (
	"context"
	"errors"
	"slices"

	"go.temporal.io/api/serviceerror"

	"github.com/clusterrun/clusterrun/workflows/closure"
)

// Fetch returns the value of a closure by its ID, however old. One that has not ended is
// waited for by the [Remote].
func (q *Queue) Fetch(ctx context.Context, id uint64) (*Remote, error) {
	remotes, err := q.FetchAll(ctx, id)
	if err != nil {
		return nil, err
	}
	return remotes[0], nil
}

// FetchAll is [Queue.Fetch] for many, which have the places of their IDs. It reads
// the history once or twice, however many they are.
func (q *Queue) FetchAll(ctx context.Context, ids ...uint64) ([]*Remote, error) {
	found, err := q.find(ctx, ids)
	if err != nil {
		return nil, err
	}
	remotes := make([]*Remote, len(ids))
	var open []*Remote
	for i, id := range ids {
		remotes[i] = fetched(id)
		if o, ended := found[id]; ended {
			remotes[i].settle(o)
		} else {
			open = append(open, remotes[i])
		}
	}
	if len(open) > 0 {
		if err := q.expectAll(ctx, open); err != nil {
			return nil, err
		}
	}
	return remotes, nil
}

// expectAll waits for closures that had not ended. They may at any moment: what ends
// once the history is followed is told, and what ended before that is found.
func (q *Queue) expectAll(ctx context.Context, remotes []*Remote) error {
	if err := q.follow(ctx); err != nil {
		return err
	}
	q.mu.Lock()
	if q.broken != nil && !errors.Is(q.broken, ErrRunEnded) {
		defer q.mu.Unlock()
		return q.broken
	}
	ids := make([]uint64, len(remotes))
	for i, r := range remotes {
		q.expect(r)
		r.sought, ids[i] = true, r.id
	}
	q.mu.Unlock()
	for {
		found, err := q.find(ctx, ids)
		if again := q.foundAll(remotes, found, err); !again {
			return err
		}
	}
}

// foundAll takes in what was found of closures. Where the run has ended meanwhile, they are to be
// looked up again: all have ended now.
func (q *Queue) foundAll(remotes []*Remote, found map[uint64]closure.Outcome, err error) (again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.wakeIfEnded()
	for _, o := range found {
		q.settle(o)
	}
	for _, r := range remotes {
		r.sought = false
		_, open := q.remotes[r.id]
		switch {
		case err != nil:
			q.giveUp(r)
		case open && q.broken != nil:
			r.sought, again = true, true
		}
	}
	return again
}

// find is [Client.Find], and waits for a server, or for those who execute the queue, that
// are away.
func (q *Queue) find(ctx context.Context, ids []uint64) (map[uint64]closure.Outcome, error) {
	for again := tries; ; {
		found, err := q.client.Find(ctx, ids...)
		var unpolled *serviceerror.FailedPrecondition // nobody has asked for queries lately
		if err == nil || ctx.Err() != nil || !Transient(err) && !errors.As(err, &unpolled) {
			return found, err
		}
		if err := again.Sleep(ctx); err != nil {
			return nil, err
		}
	}
}

// giveUp waits for a closure no longer. mu must be held.
func (q *Queue) giveUp(r *Remote) {
	rest := slices.DeleteFunc(q.remotes[r.id], func(o *Remote) bool { return o == r })
	if q.remotes[r.id] = rest; len(rest) == 0 {
		delete(q.remotes, r.id)
	}
}
