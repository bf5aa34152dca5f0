package starter

import (
	"context"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/retry"
)

const (
	// lookEvery is the interval between checks of the run.
	lookEvery = time.Second
	// lookTimeout limits the wait for an answer. A busy machine may use part of it, which is not
	// worth reporting.
	lookTimeout = 5 * time.Second
	// awayEvery replaces lookEvery while the server is away, to notice its return quickly.
	awayEvery = 250 * time.Millisecond
)

// watch checks the run during the long poll that waits for its end, for two reasons. The SDK
// retries a long poll for a minute before it reports that the server does not answer, which is
// too late for a user. And a busy server drops notifications
// (service/history/events/notifier.go, "high load"): about one time in a thousand, the long poll
// returns only when it expires, after 20 seconds.
type watch struct {
	look   func(context.Context) (closed bool, err error)
	notify func(error)
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	anew chan struct{} // closed when the long poll must be repeated
}

func newWatch(ctx context.Context, look func(context.Context) (bool, error), notify func(error)) *watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{look: look, notify: notify, cancel: cancel, done: make(chan struct{}), anew: make(chan struct{})}
	go w.run(ctx)
	return w
}

// stop ends the watch. notify is not called afterwards.
func (w *watch) stop() {
	w.cancel()
	<-w.done
}

func (w *watch) run(ctx context.Context) {
	defer close(w.done)
	var told error
	for every := lookEvery; retry.Sleep(ctx, every) == nil; {
		closed, err := w.lookOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if news := (err == nil) != (told == nil) || isStuck(err) != isStuck(told); news {
			w.notify(err)
			if told != nil && !isStuck(told) {
				w.interrupt() // the server is back
			}
			told = err
		}
		every = lookEvery
		if err != nil && !isStuck(err) {
			every = awayEvery
		}
		if closed {
			w.interrupt()
		}
	}
}

func isStuck(err error) bool {
	return IsError[*StuckError](err)
}

func (w *watch) lookOnce(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return w.look(ctx)
}

func (w *watch) interrupt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.anew)
	w.anew = make(chan struct{})
}

// untilAnew returns a context that is canceled when a call in progress must be repeated.
func (w *watch) untilAnew(ctx context.Context) (context.Context, context.CancelFunc) {
	w.mu.Lock()
	anew := w.anew
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-anew:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
