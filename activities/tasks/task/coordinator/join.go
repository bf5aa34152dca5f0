package coordinator

import (
	"context"
	"slices"
	"strings"
	"time"
)

// DefaultGrace is the time that threads may take to stop by default.
const DefaultGrace = 2 * time.Minute

// leastGrace is the least grace, for threads that are about to end.
const leastGrace = time.Millisecond

// StillRunningError names the threads that did not end within the grace.
type StillRunningError struct {
	// Threads are their names, registered ones first, in the order of registration.
	Threads []string
}

func (e *StillRunningError) Error() string {
	return "Coordinator stopped with threads still running: " + strings.Join(e.Threads, " ")
}

// JoinOption configures Join.
type JoinOption func(*join)

type join struct {
	threads    []*Thread
	grace      time.Duration
	ignoreLive bool
}

// Threads makes Join wait for these threads as well as the registered ones. A thread may be
// both.
func Threads(threads ...*Thread) JoinOption {
	return func(j *join) { j.threads = append(j.threads, threads...) }
}

// Grace sets the time that threads may take to end once a stop is requested. With 0 they have a
// millisecond, with a negative value no time at all.
func Grace(d time.Duration) JoinOption { return func(j *join) { j.grace = d } }

// IgnoreLive logs threads that exceed the grace, instead of returning an error for them.
func IgnoreLive() JoinOption { return func(j *join) { j.ignoreLive = true } }

// Join waits until the registered threads have ended, and returns the error that stopped the
// coordinator, if there is one.
//
// Without a stop it waits without limit. Once a stop is requested, the threads must end within
// the grace, which begins with the later of the stop and the call of Join. If a thread is left
// then, and no error stopped the coordinator, Join returns a [StillRunningError]. A goroutine
// cannot be ended from outside: stragglers continue.
//
// Afterwards no thread is registered, and RequestStop returns errors. Until
// ClearStop each later Join returns the same recorded error.
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
		<-told // the caller may end the process after Join
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

// union returns each thread once, in the order of first occurrence.
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

// await returns true when all threads have ended, and false if ctx ends first.
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
