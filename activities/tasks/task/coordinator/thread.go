package coordinator

import (
	"context"
	"slices"
)

// Thread is something that runs and ends, known by a name: usually a goroutine, but it may
// also be a process or a server.
type Thread struct {
	name string
	done <-chan struct{}
}

// NewThread returns a thread for something that was started elsewhere and that ends when done
// is closed. Join waits for it only if it is registered or passed to Join.
func NewThread(name string, done <-chan struct{}) *Thread { return &Thread{name, done} }

// Name returns the name of the thread in errors.
func (t *Thread) Name() string { return t.name }

// Done returns a channel that is closed when the thread has ended.
func (t *Thread) Done() <-chan struct{} { return t.done }

// Alive reports whether the thread has not ended.
func (t *Thread) Alive() bool {
	select {
	case <-t.done:
		return false
	default:
		return true
	}
}

// Register makes the next Join wait for threads. A Join that is waiting already does not wait
// for them, but forgets them as well.
func (c *Coordinator) Register(threads ...*Thread) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.register(threads...)
}

func (c *Coordinator) register(threads ...*Thread) {
	if len(c.threads)+len(threads) > cap(c.threads) {
		// Threads that have ended make room, so that starting threads for hours needs no more
		// memory.
		c.threads = slices.DeleteFunc(c.threads, func(t *Thread) bool { return !t.Alive() })
	}
	c.threads = append(c.threads, threads...)
}

// Go runs f in a registered goroutine. An error or a panic of f is a stop request. The
// context ends when a stop is requested; f may return its error.
func (c *Coordinator) Go(name string, f func(context.Context) error) *Thread {
	done := make(chan struct{})
	t := NewThread(name, done)
	c.mu.Lock()
	c.register(t)
	r := c.round
	c.mu.Unlock()
	go func() {
		defer close(done)
		guard(func() error { return f(r.ctx) }, func(failure error) {
			if err := c.report(r, failure); err != nil && !ofStop(r.ctx, err) {
				c.log().Error("A thread that outlived its Coordinator failed", "thread", name, "error", err)
			}
		})
	}()
	return t
}
