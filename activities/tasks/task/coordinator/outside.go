package coordinator

// Outside is something larger that a coordinator belongs to and stops with, such as all tasks
// of a run.
type Outside interface {
	// RequestStop passes on that a stop was requested in the coordinator. It is called once
	// per stop, even if the stop came from outside, because that may be cleared there
	// already. err is the reported error, and clean reports that the coordinator treats it as
	// a clean stop. It is called where the stop was requested, and Join waits for it.
	RequestStop(err error, clean bool) error
	// ClearStop passes on that a stop was cleared in the coordinator.
	ClearStop() error
}

// Tie makes the coordinator part of something larger, and replaces an earlier tie. Stops and
// clears of the coordinator are passed on, including an existing stop. Stops and clears
// outside are reported with [Coordinator.OutsideStopped] and [Coordinator.OutsideCleared]. If
// a stop without an error cannot be passed on, Join returns the reason.
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

// telling returns a channel to close when the stop of the round has been passed on. It returns
// nil if there is no outside, or if another call passes the stop on. c.mu must be held.
func (c *Coordinator) telling(r *round) chan struct{} {
	if c.outside == nil || r.told != nil {
		return nil
	}
	r.told = make(chan struct{})
	return r.told
}

// notTold handles a stop that could not be passed on; first reports whether it was requested
// here rather than outside.
func (c *Coordinator) notTold(r *round, first bool, why error) {
	c.mu.Lock()
	if first && r.err == nil {
		r.err = why
	}
	c.mu.Unlock()
	c.log().Error("A stop of the Coordinator could not be passed on", "error", why)
}

// OutsideStopped stops the coordinator because the outside was stopped. Join returns the error.
// Since it is not an error of this process, the rules of clean stops do not apply, and it is
// recorded even after a Join. If the coordinator has stopped already, nothing changes.
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

// OutsideCleared clears a stop because it was cleared outside.
func (c *Coordinator) OutsideCleared() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.round.stopped() {
		c.clear()
	}
}
