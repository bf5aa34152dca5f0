package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"sync"
)

// Coordinator stops threads together. Its methods may be called from any number
// of goroutines at once. Make one with [New].
type Coordinator struct {
	clean  func(error) bool
	logger *slog.Logger

	mu      sync.Mutex
	round   *round
	joined  bool
	threads []*Thread // registered, in that order
	outside Outside   // nil: the coordinator is part of nothing
}

// round is what lasts until ClearStop undoes a stop.
type round struct {
	ctx  context.Context
	stop context.CancelCauseFunc
	err  error // what stopped it
	// told is closed when what the coordinator is part of knows of the stop, or cannot
	// be told. Nil: it has not been passed on.
	told chan struct{}
}

func newRound() *round {
	r := &round{}
	r.ctx, r.stop = context.WithCancelCause(context.Background())
	return r
}

func (r *round) stopped() bool { return r.ctx.Err() != nil }

// New returns a coordinator that nobody has told to stop.
func New(opts ...Option) *Coordinator {
	c := &Coordinator{clean: endOfInput, round: newRound()}
	for _, o := range opts {
		o(c)
	}
	return c
}

// RequestStop tells all threads to stop. If it is the first to do so since New or
// ClearStop, err is recorded, and Join returns it; nil, and what is a clean stop,
// records nothing. An error that comes when the coordinator has stopped already is
// logged only.
//
// After Join nobody would ever hear of an error. Then, and only then, RequestStop
// returns it, unless it is a clean stop, and does nothing else.
func (c *Coordinator) RequestStop(err error) error { return c.report(nil, err) }

// report is RequestStop for what belongs to a round; nil is the one of now. It
// returns an error that it can hand to nobody.
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
	// The lock is free again: a handler of the log may ask us something.
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

// isClean reports whether err is no error of the program.
func (c *Coordinator) isClean(err error) bool {
	_, panicked := errors.AsType[*PanicError](err)
	return !panicked && c.clean(err)
}

// ofStop reports whether err is only the stop that ended ctx.
func ofStop(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// ClearStop makes a coordinator that was stopped, and perhaps joined, like a new
// one: nothing is requested, and nothing recorded. Registered threads stay so,
// unless Join has been there. Contexts that have ended do not begin again; Context
// has a new one.
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

// clear must be called with mu held.
func (c *Coordinator) clear() {
	c.joined = false
	if c.round.stopped() {
		c.round = newRound()
	}
}

// ShouldStop reports whether a stop was requested.
func (c *Coordinator) ShouldStop() bool { return c.current().stopped() }

// WaitForStop waits until a stop is requested, and then returns true; it returns
// false if ctx ends before.
func (c *Coordinator) WaitForStop(ctx context.Context) bool {
	r := c.current()
	select {
	case <-r.ctx.Done():
	case <-ctx.Done():
	}
	return r.stopped()
}

// Context ends when a stop is requested; its cause is then the recorded error, or
// [context.Canceled] where there is none.
func (c *Coordinator) Context() context.Context { return c.current().ctx }

// Err returns the error that stopped the coordinator: the one Join returns, for those
// who do not join. It is nil before a stop, after a clean one, and after ClearStop.
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
