package coordinator

// Outside is something wider that a coordinator is part of and stops with, such as
// all tasks of a run.
type Outside interface {
	// RequestStop passes on that a stop was asked for in the coordinator, once until it
	// is cleared: also if it was stopped from outside before, because that may be
	// cleared there already. Err is what was reported, and clean says that the
	// coordinator takes it for no error. It is called where the stop was asked for,
	// and Join waits for it.
	RequestStop(err error, clean bool) error
	// ClearStop passes on that a stop was cleared in the coordinator.
	ClearStop() error
}

// Tie makes the coordinator part of something wider, in the place of what it was
// part of before: what stops or is cleared here is passed on, and a stop that stands
// already is, too. What happens outside is reported with [Coordinator.OutsideStopped]
// and [Coordinator.OutsideCleared]. If a stop without an error cannot be passed on,
// why is what Join returns.
func (c *Coordinator) Tie(o Outside) (untie func()) {
	c.mu.Lock()
	c.outside = o
	r := c.round
	err := r.err
	var told chan struct{}
	if r.stopped() {
		told = c.telling(r)
	}
	c.mu.Unlock()
	if told != nil {
		defer close(told)
		if failed := o.RequestStop(err, false); failed != nil {
			c.notTold(r, true, failed)
		}
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.outside == o {
			c.outside = nil
		}
	}
}

// telling must be called with mu held. It returns what to close when the stop of the round
// has been passed on; nil: nobody has to be told, or others do it.
func (c *Coordinator) telling(r *round) chan struct{} {
	if c.outside == nil || r.told != nil {
		return nil
	}
	r.told = make(chan struct{})
	return r.told
}

// notTold is for a stop that could not be passed on; first says that it was asked for
// here and not outside.
func (c *Coordinator) notTold(r *round, first bool, why error) {
	c.mu.Lock()
	if first && r.err == nil {
		r.err = why
	}
	c.mu.Unlock()
	c.log().Error("A stop of the Coordinator could not be passed on", "error", why)
}

// OutsideStopped stops the coordinator because what it is part of was stopped. An
// error is what Join returns; it is none of this process, so no rule of clean stops
// is asked, and it is recorded after a Join, too. If the coordinator has stopped
// already, nothing changes.
func (c *Coordinator) OutsideStopped(err error) {
	c.mu.Lock()
	r := c.round
	first := !r.stopped()
	if first {
		r.err = err
		r.stop(err)
	}
	c.mu.Unlock()
	if first {
		c.log().Info("The Coordinator was stopped from outside", "error", err)
	}
}

// OutsideCleared is ClearStop, of what the coordinator is part of.
func (c *Coordinator) OutsideCleared() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.round.stopped() {
		c.clear()
	}
}
