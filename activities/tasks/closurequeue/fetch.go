package closurequeue

import (
	"context"
	"errors"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Fetch returns a closure by its ID, however old. If it has not ended, the [Remote] waits for
// it.
func (q *Queue) Fetch(ctx context.Context, id uint64) (*Remote, error) {
	remotes, err := q.FetchAll(ctx, id)
	if err != nil {
		return nil, err
	}
	return remotes[0], nil
}

// FetchAll is like [Queue.Fetch] for many closures, and keeps their order. It reads the history
// once or twice for all of them.
func (q *Queue) FetchAll(ctx context.Context, ids ...uint64) ([]*Remote, error) {
	found, err := q.client.seek(ctx, ids)
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

// expectAll waits for closures that had not ended yet. They may end at any moment, so the
// history is followed first and searched afterwards for those that ended before that.
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
		found, err := q.client.seek(ctx, ids)
		if again := q.foundAll(remotes, found, err); !again {
			return err
		}
	}
}

// foundAll records the outcomes that were found. It returns true if the run has ended in the
// meantime: all closures have ended then, and must be looked up again.
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

// seek calls [Client.Find], and retries while the server or the workers of the queue are
// away.
func (c *Client) seek(ctx context.Context, ids []uint64) (map[uint64]closure.Outcome, error) {
	for again := tries; ; {
		found, err := c.Find(ctx, ids...)
		if err == nil || ctx.Err() != nil || !servererror.IsTransient(err) && !servererror.IsUnpolled(err) {
			return found, err
		}
		if err := again.Sleep(ctx); err != nil {
			return nil, err
		}
	}
}
