// Package retry waits between the tries of something that fails for a while.
package retry

import (
	"context"
	"time"
)

// Sleep waits. Where ctx is done before, it returns the cause of that at once.
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

// Backoff is the time between tries: First, and then twice as long each time, up to Most.
// A copy begins where the original is.
type Backoff struct {
	First, Most time.Duration

	last time.Duration
}

// Next returns how long to wait before the next try.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, b.First), b.Most)
	return b.last
}

// Sleep is [Sleep] for the time before the next try.
func (b *Backoff) Sleep(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// Reset is called when a try has succeeded: the next time is First again.
func (b *Backoff) Reset() { b.last = 0 }
