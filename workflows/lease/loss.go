package lease

import "time"

// Loss decides, for the run, when the process of a task on a silent host can no longer live.
// Times are times of the run, by the clock of the server.
//
// The run offers the task to its host again and again. It asks [Loss.Lost] only while no offer is
// open: an open one can be taken at any moment.
type Loss struct {
	bounds Bounds
	// heard is the last time at which the server can have given a lease.
	heard time.Time
	// said is the last time at which a witness that has promised to deny can have said
	// otherwise. It is zero without a promise.
	said time.Time
}

// NewLoss returns the rules for a task that was offered at that time.
func NewLoss(b Bounds, offered time.Time) *Loss { return &Loss{bounds: b, heard: offered} }

// Heard notes that the server can have given a lease at that time. The host may have taken
// an offer since the promise, which is for earlier ones.
func (l *Loss) Heard(at time.Time) {
	if at.After(l.heard) {
		l.heard = at
	}
	l.said = time.Time{}
}

// Promised notes that a witness promised at that time to deny the lease, after it had said
// nothing else for so long. One witness is enough.
func (l *Loss) Promised(at time.Time, quiet time.Duration) {
	if said := at.Add(-quiet); l.said.IsZero() || said.Before(l.said) {
		l.said = said
	}
}

// LastHeard returns the last time at which the server can have given a lease.
func (l *Loss) LastHeard() time.Time { return l.heard }

// FirstWait returns for how long the run waits for a host before it asks for the first promise.
// The last lease of the server may be over by then.
func (l *Loss) FirstWait(now time.Time) time.Duration {
	return max(minWait, l.heard.Add(l.bounds.Passed()).Sub(now))
}

// Lost reports whether nothing of the task lives.
func (l *Loss) Lost(now time.Time) bool { return !now.Before(l.over()) }

// over returns the time from which nothing lives, by what is known.
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

// minWait is the least time for which an offer is open, so that a host that is back takes it.
const minWait = 2 * time.Second

// Wait returns for how long the next offer is open. Without a promise the run asks again when
// the last lease of the server is over, and then every so often.
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
