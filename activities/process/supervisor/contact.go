package supervisor

import (
	"context"
	"syscall"
	"time"
)

// over reports whether the process must die.
func (c Contact) over(now int64) bool { return c.Until != 0 && c.Until <= now }

// killAt returns when a process that lost contact is killed. The grace counts from when the contact
// expired, so if the machine was suspended, it may be over before the process gets the signal.
func (c Contact) killAt() int64 { return c.Until + c.Grace.Nanoseconds() }

// next returns when the process must be stopped or killed, on CLOCK_BOOTTIME; 0 means never.
func (p *process) next() int64 {
	if !p.killed.IsZero() {
		return 0
	}
	at := p.contact.Until
	if p.cutOff {
		at = p.contact.killAt()
	}
	if at == 0 || p.killAt != 0 && p.killAt < at {
		at = p.killAt
	}
	return at
}

// Renew extends the contact of a process; see [API].
func (s *supervisor) Renew(_ context.Context, r RenewRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	run := s.runs[runHash(r.Key.Run)]
	if run == nil {
		return nil // none of the run's processes is alive
	}
	t := run.tasks[taskID{r.Key.Generation, r.Key.Task}]
	if t == nil {
		return nil
	}
	if r.Fence.Less(t.fence) {
		return fenced(r.Key, r.Fence, t.fence)
	}
	for _, p := range t.processes {
		// The timer may now fire too early, which is harmless.
		if p.contact.Until != 0 && !p.cutOff {
			p.contact.Until = max(p.contact.Until, r.Until)
		}
	}
	return nil
}

// watch sets the timer for the deadline of a process. s.table.mu must be held.
func (s *stopper) watch(p *process) {
	at := p.next()
	if at == 0 {
		return
	}
	if s.boot == nil {
		timer, err := newBootTimer(s.timeIsUp)
		if err != nil {
			s.log.Error("Process times cannot be recorded here.", "task", p.Key, "error", err)
			return
		}
		s.boot = timer
	}
	if s.bootNext == 0 || at < s.bootNext {
		s.bootNext = at
		_ = s.boot.set(at)
	}
}

// timeIsUp kills processes that ran too long, stops those cut off from the server, and sets the
// timer for the next deadline.
func (s *stopper) timeIsUp() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	now := BootNanos()
	s.bootNext = 0
	for _, p := range s.table.living {
		if p.phase != running && p.phase != ending {
			continue
		}
		if p.killAt != 0 && p.killAt <= now && !p.overdue && (p.phase == ending || !zombie(p.PID)) {
			p.overdue = true
			if p.reason == ReasonNone && p.phase == running {
				p.reason = ReasonMaxRunTime
			}
			s.kill(p)
		}
		if p.contact.over(now) && !p.cutOff {
			p.cutOff = true
			s.log.Warn("The Temporal server did not answer in time; stopping a process (on_disconnect).", "task", p.Key, "pid", p.PID)
			left := time.Duration(max(0, p.contact.killAt()-now))
			s.stop([]*process{p}, syscall.Signal(p.contact.Signal), time.Now().Add(left), ReasonCutOff, false)
		}
		if p.cutOff && p.contact.killAt() <= now && p.killed.IsZero() {
			s.kill(p)
		}
		if at := p.next(); at != 0 && (s.bootNext == 0 || at < s.bootNext) {
			s.bootNext = at
		}
	}
	if s.bootNext != 0 && s.boot != nil {
		_ = s.boot.set(s.bootNext)
	}
}

// close stops the deadline timer.
func (s *stopper) close() {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if s.boot != nil {
		s.boot.close()
	}
}
