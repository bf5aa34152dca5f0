package coordinator

import (
	"context"
	"slices"
)

// Thread is something that runs and ends, known by a name: most often a
// goroutine, but a process or a server is one as well.
type Thread struct {
	name string
	done <-chan struct{}
}

// NewThread stands for something that was started elsewhere and whose end is the
// closing of done. It has to be registered, or named to Join, to be waited for.
func NewThread(name string, done <-chan struct{}) *Thread { return &Thread{name, done} }

// Name returns what the thread is called in errors.
func (t *Thread) Name() string { return t.name }

// Done is closed when the thread has ended.
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

// Register has the next Join wait for threads. Those that are registered while a
// Join is waiting are not waited for, and that Join forgets them as well.
func (c *Coordinator) Register(threads ...*Thread) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.register(threads...)
}

func (c *Coordinator) register(threads ...*Thread) {
	if len(c.threads)+len(threads) > cap(c.threads) {
		// Whoever starts threads for hours is to have room for those that live.
		c.threads = slices.DeleteFunc(c.threads, func(t *Thread) bool { return !t.Alive() })
	}
	c.threads = append(c.threads, threads...)
}

// Go runs f in a goroutine that is registered. An error of f, and a panic, is a
// stop request. The context ends when a stop is requested; f may return its error.
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
