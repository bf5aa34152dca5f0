package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"sync"
)

// Coordinator stops threads together. Its methods may be called concurrently. Use [New] to
// create one.
type Coordinator struct {
	clean  func(error) bool
	logger *slog.Logger

	mu      sync.Mutex
	round   *round
	joined  bool
	threads []*Thread // in the order of registration
	outside Outside   // nil if the coordinator is not tied
}

// round is the state that ClearStop replaces.
type round struct {
	ctx  context.Context
	stop context.CancelCauseFunc
	err  error // what stopped it
	// told is closed when the stop has been passed on to the outside, or could not be. It is
	// nil if no attempt was made.
	told chan struct{}
}

func newRound() *round {
	r := &round{}
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	return r
}

func (r *round) stopped() bool { return r.ctx.Err() != nil }

// New returns a coordinator that has not been stopped.
func New(opts ...Option) *Coordinator {
	c := &Coordinator{clean: endOfInput, round: newRound()}
	for _, o := range opts {
		o(c)
	}
	return c
}

// RequestStop tells all threads to stop. If it is the first to do so since New or ClearStop,
// err is recorded, and Join returns it; nil, and an error that is a clean stop, records
// nothing. If the coordinator has stopped already, the error is only logged.
//
// After Join an error would be lost. Then, and only then, RequestStop returns it, unless it is
// a clean stop, and does nothing else.
func (c *Coordinator) RequestStop(err error) error { return c.report(nil, err) }

// report is RequestStop for the thread of a round; nil is the current round. It returns an
// error that it can report nowhere else.
func (c *Coordinator) report(of *round, err error) error {
	reported, clean := err, err != nil && c.isClean(err)
	if clean {
		err = nil
	}
	c.mu.Lock()
	if of != nil && of != c.round || c.joined && err != nil {
		c.mu.Unlock()
		return err
	}
	r, outside := c.round, c.outside
	first := !r.stopped()
	if first {
		r.err = err
		r.stop(err)
	}
	var told chan struct{}
	if first || !ofStop(r.ctx, err) {
		told = c.telling(r)
	}
	c.mu.Unlock()
	// This is after the unlock: a log handler may call the coordinator.
	switch {
	case err == nil:
	case first:
		c.log().Info("Error reported to Coordinator", "error", err)
	case !ofStop(r.ctx, err):
		c.log().Info("Error reported to Coordinator after the stop; Join does not return it", "error", err)
	}
	if told != nil {
		defer close(told)
		if err := outside.RequestStop(reported, clean); err != nil {
			c.notTold(r, first, err)
		}
	}
	return nil
}

// isClean reports whether err is a clean stop, not an error of the program.
func (c *Coordinator) isClean(err error) bool {
	_, panicked := errors.AsType[*PanicError](err)
	return !panicked && c.clean(err)
}

// ofStop reports whether err is only the stop that ended ctx.
func ofStop(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// ClearStop resets a coordinator that was stopped, and perhaps joined, to its initial state: no
// stop is requested, and no error recorded. Threads stay registered unless Join has returned.
// Ended contexts stay ended; Context returns a new one.
func (c *Coordinator) ClearStop() {
	c.mu.Lock()
	stopped, outside := c.round.stopped(), c.outside
	c.clear()
	c.mu.Unlock()
	if !stopped || outside == nil {
		return
	}
	if err := outside.ClearStop(); err != nil {
		c.log().Error("The end of a stop of the Coordinator could not be passed on", "error", err)
	}
}

// clear resets the coordinator. c.mu must be held.
func (c *Coordinator) clear() {
	c.joined = false
	if c.round.stopped() {
		c.round = newRound()
	}
}

// ShouldStop reports whether a stop was requested.
func (c *Coordinator) ShouldStop() bool { return c.current().stopped() }

// WaitForStop waits until a stop is requested, and then returns true. It returns false if ctx
// ends first.
func (c *Coordinator) WaitForStop(ctx context.Context) bool {
	r := c.current()
	select {
	case <-r.ctx.Done():
	case <-ctx.Done():
	}
	return r.stopped()
}

// Context returns a context that ends when a stop is requested; its cause is then the
// recorded error, or [context.Canceled] if there is none.
func (c *Coordinator) Context() context.Context { return c.current().ctx }

// Err returns the error that stopped the coordinator, which Join returns as well. It is nil
// before a stop, after a clean stop, and after ClearStop.
func (c *Coordinator) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.round.err
}

// Joined reports whether Join has returned since New or ClearStop.
func (c *Coordinator) Joined() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.joined
}

func (c *Coordinator) current() *round {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.round
}

func (c *Coordinator) log() *slog.Logger {
	if c.logger != nil {
		return c.logger
	}
	return slog.Default()
}
