package coordinate

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// line has the requests that keep their order and were not taken up, and knows how
// many of those to schedule are not in the queue.
type line struct {
	mu       sync.Mutex
	requests []standing
	bytes    int
	// arriving counts the requests to schedule that are not in the queue.
	arriving int
	// changed is closed, and made anew, when something of the above has changed.
	changed chan struct{}
}

// standing is a request in the line, and how long it was.
type standing struct {
	Request
	bytes int
}

func newLine() *line { return &line{changed: make(chan struct{})} }

// wake must be called with mu held.
func (l *line) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits until ready, which is called with mu held, says so.
func (l *line) await(ctx context.Context, ready func() bool) error {
	for {
		l.mu.Lock()
		if ready() {
			l.mu.Unlock()
			return nil
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add puts a request at the end, once there is room.
func (l *line) add(ctx context.Context, r Request, bytes int) {
	_ = l.await(ctx, func() bool {
		if len(l.requests) > 0 && l.bytes+bytes > maxStanding {
			return false
		}
		l.requests = append(l.requests, standing{r, bytes})
		l.bytes += bytes
		if r.schedules() {
			l.arriving++
		}
		l.wake()
		return true
	})
}

// next waits for the first one, and takes it out.
func (l *line) next(ctx context.Context) (r Request, err error) {
	err = l.await(ctx, func() bool {
		if len(l.requests) == 0 {
			return false
		}
		r = l.requests[0].Request
		l.bytes -= l.requests[0].bytes
		if l.requests = l.requests[1:]; len(l.requests) == 0 {
			l.requests = nil // so that what was taken can be collected
		}
		l.wake()
		return true
	})
	return r, err
}

// arrived says that a request to schedule is in the queue, or is not going to be.
func (l *line) arrived() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arriving--
	l.wake()
}

// allArrive waits until all requests to schedule are in the queue, for as long as
// some get there.
func (l *line) allArrive(ctx context.Context, patience time.Duration) error {
	left := -1
	for {
		limited, cancel := context.WithTimeout(ctx, patience)
		err := l.await(limited, func() bool {
			if l.arriving == left {
				return false
			}
			left = l.arriving
			return true
		})
		cancel()
		switch {
		case left == 0:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("the input has ended, and %d of the requests to schedule did not get into the queue: nothing did for %s", left, patience)
		}
	}
}
