// Package retry waits between retries.
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

// Backoff computes the time between retries: First, and then twice as long each time, up to Most. A
// copy continues from the original's state.
type Backoff struct {
	First, Most time.Duration

	last time.Duration
}

// Next returns how long to wait before the next try.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(2*b.last, b.First), b.Most)
	return b.last
}

// Sleep waits until the next try is due, or until ctx is done.
func (b *Backoff) Sleep(ctx context.Context) error { return Sleep(ctx, b.Next()) }

// Reset restarts at First. It is called after a successful try.
func (b *Backoff) Reset() { b.last = 0 }
