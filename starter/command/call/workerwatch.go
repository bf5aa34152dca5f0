package call

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
)

const (
	// askFirst is for how long a request to a queue may take before the run is asked
	// whether somebody executes it, askAgain when it is asked again, and askAway the same
	// while nobody does.
	askFirst = 2 * time.Second
	askAgain = 30 * time.Second
	askAway  = time.Second
)

// workerWatch looks, beside a request to the queue of a run, whether somebody is there
// to answer it: a server keeps such a request waiting without a word.
type workerWatch struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	absent error // a [*starter.UnansweredError] while nobody is there
}

// watchWorkers begins to look. News get what changes: an error when nobody is there, and nil
// when somebody is again.
func watchWorkers(ctx context.Context, answers func(context.Context) error, news func(error)) *workerWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &workerWatch{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for after := askFirst; retry.Sleep(ctx, after) == nil; {
			err := answers(ctx)
			if ctx.Err() != nil {
				return
			}
			var nobody *starter.UnansweredError
			absent := errors.As(err, &nobody)
			if err != nil && !absent { // a server that is away, of which others tell
				continue
			}
			w.mu.Lock()
			changed := absent != (w.absent != nil)
			w.absent = err
			w.mu.Unlock()
			if changed {
				news(err)
			}
			if after = askAgain; absent {
				after = askAway
			}
		}
	}()
	return w
}

// end stops looking, and has the error with which nobody was there, if nobody was.
func (w *workerWatch) end() error {
	w.cancel()
	<-w.done
	return w.absent
}
