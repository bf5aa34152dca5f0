package starter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/retry"
)

const (
	// lookEvery is how often the server is asked about the run.
	lookEvery = time.Second
	// lookTimeout is how late an answer may be: less is a busy machine's, and nothing to
	// tell a person of.
	lookTimeout = 5 * time.Second
	// While the server is away it is asked more often: its return is awaited.
	awayEvery = 250 * time.Millisecond
)

// watch looks at a run beside the long poll that waits for its end, for two
// reasons. The SDK retries a long poll for a minute before it says that the
// server does not answer, which is too late to tell a person. And a busy server
// drops notifications (service/history/events/notifier.go, "high load"): about
// one end in a thousand is told by a long poll only when that expires, after 20
// seconds.
type watch struct {
	look   func(context.Context) (closed bool, err error)
	notify func(error)
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	anew chan struct{} // closed when the long poll is to be made anew
}

func newWatch(ctx context.Context, look func(context.Context) (bool, error), notify func(error)) *watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{look: look, notify: notify, cancel: cancel, done: make(chan struct{}), anew: make(chan struct{})}
	go w.run(ctx)
	return w
}

// stop ends the watch; notify is not called after it.
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
	var stuck *StuckError
	return errors.As(err, &stuck)
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

// untilAnew returns a context that ends when a call under way is to be made anew.
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
