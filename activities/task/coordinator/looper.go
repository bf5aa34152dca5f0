package coordinator

import (
	"context"
	"fmt"
	"time"
)

// Looper is something that is done again and again until a stop is requested.
type Looper struct {
	// Name is what it is called in errors.
	Name string
	// Interval is the time from the beginning of one call to that of the next. The
	// first call comes at once, and the others at fixed times counted from it,
	// however long a call takes; those that were missed meanwhile are made up, back
	// to back. 0 is always back to back. It must not be negative.
	Interval time.Duration
	// Start is called before the first call, if it is set.
	Start func(context.Context) error
	// Run is the call. Its context ends when a stop is requested, and if it returns
	// the error of the context then, it has not failed.
	Run func(context.Context) error
	// Stop is called after the last call, if it is set and nothing failed.
	Stop func() error
}

// Loop starts a looper in a goroutine that is registered. What fails in it is a
// stop request. If a stop was requested before, Start and Stop are called, but
// Run is not.
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
		return fmt.Errorf("looper %q: Interval is %v: it has to be 0, for calls back to back, or more", l.Name, l.Interval)
	}
	return nil
}

// schedule has the times of calls. They are on the monotonic clock, so that
// setting the clock of the machine changes nothing.
type schedule struct {
	next     time.Time
	interval time.Duration
}

func newSchedule(interval time.Duration) *schedule { return &schedule{time.Now(), interval} }

// await returns true when the next call is due, false if ctx has ended.
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
