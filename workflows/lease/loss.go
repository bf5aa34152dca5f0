package lease

import "time"

// Loss decides for the run when a task's process on a silent host can no longer be alive. All times
// are by the server's clock.
//
// The run repeatedly offers the task to its host. It calls [Loss.Lost] only while no offer is open,
// because an open offer can be accepted at any moment.
type Loss struct {
	bounds Bounds
	// heard is the last time that the server could have granted a lease.
	heard time.Time
	// said is the last time that a witness that has promised to deny could have answered otherwise.
	// It is zero without a promise.
	said time.Time
}

// NewLoss returns a Loss for a task that was offered at the given time.
func NewLoss(b Bounds, offered time.Time) *Loss { return &Loss{bounds: b, heard: offered} }

// Heard records that the server could have granted a lease at the given time. The host may have
// accepted an offer after the promise, which covers only earlier offers.
func (l *Loss) Heard(at time.Time) {
	if at.After(l.heard) {
		l.heard = at
	}
	l.said = time.Time{}
}

// Promised records that a witness, which had given no other answer for the duration quiet, promised
// at the given time to deny the lease. One witness is enough.
func (l *Loss) Promised(at time.Time, quiet time.Duration) {
	if said := at.Add(-quiet); l.said.IsZero() || said.Before(l.said) {
		l.said = said
	}
}

// LastHeard returns when the server could last have granted a lease.
func (l *Loss) LastHeard() time.Time { return l.heard }

// FirstWait returns how long the run waits for a host before it requests the first promise. The
// server's last lease may have expired by then.
func (l *Loss) FirstWait(now time.Time) time.Duration {
	return max(minWait, l.heard.Add(l.bounds.Passed()).Sub(now))
}

// Lost reports whether none of the task's processes can be alive.
func (l *Loss) Lost(now time.Time) bool { return !now.Before(l.over()) }

// over returns when the last process must be dead, given what is known.
func (l *Loss) over() time.Time {
	long := l.heard.Add(l.bounds.LongPassed())
	if l.said.IsZero() {
		return long
	}
	at := l.heard
	if l.said.After(at) {
		at = l.said
	}
	if short := at.Add(l.bounds.Passed()); short.Before(long) {
		return short
	}
	return long
}

// minWait is the minimum time an offer stays open, so that a host that returns can accept it.
const minWait = 2 * time.Second

// Wait returns how long the next offer stays open. If there is no promise, the run retries when the
// server's last lease expires, and then at regular intervals.
func (l *Loss) Wait(now time.Time) time.Duration {
	over := l.over()
	if l.said.IsZero() {
		short := l.heard.Add(l.bounds.Passed())
		for !short.After(now) {
			short = short.Add(l.bounds.Passed())
		}
		if short.Before(over) {
			over = short
		}
	}
	return max(minWait, over.Sub(now))
}
