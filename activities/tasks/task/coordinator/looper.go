package coordinator

import (
	"context"
	"fmt"
	"time"
)

// Looper describes something that is repeated until a stop is requested.
type Looper struct {
	// Name is its name in errors.
	Name string
	// Interval is the time between the beginnings of calls. The first call happens at once, and
	// the others at fixed times counted from it, no matter how much time a call takes; missed
	// calls are made up, back to back. 0 means always back to back. It must not be negative.
	Interval time.Duration
	// Start, if not nil, is called before the first call.
	Start func(context.Context) error
	// Run is the call. Its context ends when a stop is requested; if Run then returns the
	// error of the context, it has not failed.
	Run func(context.Context) error
	// Stop, if not nil, is called after the last call if nothing failed.
	Stop func() error
}

// Loop starts a looper in a registered goroutine. A failure in it is a stop request. If a
// stop was requested before, Start and Stop are called, but Run is not.
func (c *Coordinator) Loop(l Looper) *Thread { return c.Go(l.Name, l.loop) }

func (l Looper) loop(ctx context.Context) error {
	if err := l.check(); err != nil {
		return err
	}
	if l.Start != nil {
		if err := l.Start(ctx); err != nil {
			return err
		}
	}
	for s := newSchedule(l.Interval); s.await(ctx); {
		if err := l.Run(ctx); err != nil && !ofStop(ctx, err) {
			return err
		}
	}
	if l.Stop != nil {
		return l.Stop()
	}
	return nil
}

func (l Looper) check() error {
	switch {
	case l.Run == nil:
		return fmt.Errorf("looper %q: Run is not set: it is the function to call", l.Name)
	case l.Interval < 0:
		return fmt.Errorf("looper %q: Interval is %v: must be 0 (calls back to back) or more", l.Name, l.Interval)
	}
	return nil
}

// schedule computes the times of calls on the monotonic clock, so that setting the machine's
// clock changes nothing.
type schedule struct {
	next     time.Time
	interval time.Duration
}

func newSchedule(interval time.Duration) *schedule { return &schedule{time.Now(), interval} }

// await returns true when the next call is due, and false if ctx ends first.
func (s *schedule) await(ctx context.Context) bool {
	if wait := time.Until(s.next); wait > 0 {
		due := time.NewTimer(wait)
		defer due.Stop()
		select {
		case <-due.C:
		case <-ctx.Done():
		}
	}
	s.next = s.next.Add(s.interval)
	return ctx.Err() == nil
}
