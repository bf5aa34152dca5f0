package coordinator

// Outside is something wider that a coordinator is part of and stops with, such as
// all tasks of a run.
type Outside interface {
	// RequestStop passes on a stop that began in the coordinator. Err is what was
	// reported, and clean says that the coordinator takes it for no error. It is
	// called where the stop was asked for, and Join waits for it.
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
	stopped, err := r.stopped(), r.err
	told := c.telling(r)
	c.mu.Unlock()
	if stopped {
		c.tell(r, told, o, err, false)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.outside == o {
			c.outside = nil
		}
	}
}

// telling is for holders of mu: from now on a Join waits until the channel is closed,
// if the round has stopped and there is somebody to tell.
func (c *Coordinator) telling(r *round) (told chan struct{}) {
	if c.outside != nil && r.stopped() {
		r.told = make(chan struct{})
	}
	return r.told
}

func (c *Coordinator) tell(r *round, told chan struct{}, o Outside, err error, clean bool) {
	defer close(told)
	failed := o.RequestStop(err, clean)
	if failed == nil {
		return
	}
	c.mu.Lock()
	if r.err == nil {
		r.err = failed
	}
	c.mu.Unlock()
	c.log().Error("A stop of the Coordinator could not be passed on", "error", failed)
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
