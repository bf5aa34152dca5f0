package taskapi

import (
	"cmp"
	"sync"
	"time"
)

const (
	// askEvery is the average time between requests that a task may send to its run. Each
	// request adds events to the run's history and writes on the server, which other runs
	// share.
	askEvery = 200 * time.Millisecond
	// askAtOnce is the number of requests that a task may send without waiting.
	askAtOnce = 20
)

// pace spaces the requests of a task to its run. The zero value belongs to a task that has
// sent none.
type pace struct {
	mu sync.Mutex
	// every replaces askEvery, unless it is 0.
	every time.Duration
	// next is the time at which the next request would come if all came at the average rate.
	next time.Time
}

// turn returns the time that a request that comes now must wait. If that is longer than
// patience, ok is false and the request is not counted.
func (p *pace) turn(now time.Time, patience time.Duration) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := cmp.Or(p.every, askEvery)
	if idle := now.Add(-(askAtOnce - 1) * every); p.next.Before(idle) {
		p.next = idle
	}
	wait = max(0, p.next.Sub(now))
	if wait > patience {
		return patience, false
	}
	p.next = p.next.Add(every)
	return wait, true
}
