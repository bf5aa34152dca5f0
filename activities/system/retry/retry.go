// Package retry implements waits between attempts.
package retry

import (
	"context"
	"time"
)

// Sleep waits for d. If ctx is done first, it immediately returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Backoff computes the time between attempts. The first is First, and each further one is twice as
// long, up to Most. A copy continues from the original's state.
type Backoff struct {
	First, Most time.Duration

	last time.Duration
}

// Next returns how long to wait before the next attempt.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, b.First), b.Most)
	return b.last
}

// Sleep waits until the next attempt is due or ctx is done.
func (b *Backoff) Sleep(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// Reset restarts at First. It is to be called after a successful attempt.
func (b *Backoff) Reset() { b.last = 0 }
