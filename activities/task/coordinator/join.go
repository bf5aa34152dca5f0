package coordinator

import (
	"context"
	"slices"
	"strings"
	"time"
)

// DefaultGrace is how long threads may take to stop if Join is not told.
const DefaultGrace = 2 * time.Minute

// leastGrace lets threads end that are just about to, even with no grace.
const leastGrace = time.Millisecond

// StillRunningError names the threads that did not end within the grace.
type StillRunningError struct {
	// Threads are their names, registered ones first, in the order of registration.
	Threads []string
}

func (e *StillRunningError) Error() string {
	return "Coordinator stopped with threads still running: " + strings.Join(e.Threads, " ")
}

// JoinOption is something Join is told.
type JoinOption func(*join)

type join struct {
	threads    []*Thread
	grace      time.Duration
	ignoreLive bool
}

// Threads are waited for as well as the registered ones. A thread may be both.
func Threads(threads ...*Thread) JoinOption {
	return func(j *join) { j.threads = append(j.threads, threads...) }
}

// Grace sets how long threads may take to end once a stop is requested. With 0 they
// have a millisecond, with less nothing.
func Grace(d time.Duration) JoinOption { return func(j *join) { j.grace = d } }

// IgnoreLive has threads that outlast the grace logged; they are no error then.
func IgnoreLive() JoinOption { return func(j *join) { j.ignoreLive = true } }

// Join waits until the registered threads have ended, and returns the error that
// stopped the coordinator, if there is one.
//
// Without a stop it waits without limit. Once a stop is requested the threads have
// the grace to end, counted from the stop, or from the call of Join where that is
// later; if one is left then, and no error stopped the coordinator, Join returns a
// [StillRunningError]. A goroutine cannot be ended from outside: stragglers go on.
//
// Afterwards no thread is registered any more, and RequestStop hands errors back.
// Until ClearStop each later Join returns the same recorded error.
func (c *Coordinator) Join(opts ...JoinOption) error {
	j := join{grace: DefaultGrace}
	for _, o := range opts {
		o(&j)
	}
	c.mu.Lock()
	threads := union(c.threads, j.threads)
	round := c.round
	c.mu.Unlock()

	if !await(round.ctx, threads) && j.grace >= 0 {
		grace, cancel := context.WithTimeout(context.Background(), max(j.grace, leastGrace))
		await(grace, threads)
		cancel()
	}
	left := &StillRunningError{}
	for _, t := range threads {
		if t.Alive() {
			left.Threads = append(left.Threads, t.name)
		}
	}

	c.mu.Lock()
	told := c.round.told
	c.mu.Unlock()
	if told != nil {
		<-told // who returns from here may end the process
	}

	c.mu.Lock()
	c.joined = true
	c.threads = nil
	err := c.round.err
	c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case len(left.Threads) == 0:
		return nil
	case j.ignoreLive:
		c.log().Info(left.Error())
		return nil
	}
	return left
}

// union has each thread once, in the order of its first place.
func union(registered, passed []*Thread) []*Thread {
	var all []*Thread
	seen := map[*Thread]bool{}
	for _, t := range slices.Concat(registered, passed) {
		if !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	return all
}

// await returns true when all threads have ended, false when ctx ends before.
func await(ctx context.Context, threads []*Thread) bool {
	for _, t := range threads {
		select {
		case <-t.done:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
