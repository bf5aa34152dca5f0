package taskapi

import (
	"sync"
	"time"
)

const (
	// askEvery is how often a task may ask its run for something, on average: each time
	// costs the run some events of its history and the server a few writes, which runs of
	// others have to share.
	askEvery = 200 * time.Millisecond
	// askAtOnce is how many of these it may ask without a wait.
	askAtOnce = 20
)

// pace spaces what a task asks of its run. The zero value is that of a task which has asked
// nothing.
type pace struct {
	mu sync.Mutex
	// next is when the next one would come if all came as slowly as they may.
	next time.Time
}

// turn returns after how long one that comes now may be asked. ok is false where that is
// longer than it would wait; it has no turn then.
func (p *pace) turn(now time.Time, patience time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if idle := now.Add(-(askAtOnce - 1) * askEvery); p.next.Before(idle) {
		p.next = idle
	}
	wait = max(0, p.next.Sub(now))
	if wait > patience {
		return patience, false
	}
	p.next = p.next.Add(askEvery)
	return wait, true
}
