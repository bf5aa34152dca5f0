package call

import (
	"context"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
)

const (
	// askFirst is the time after which a run that has not answered a request is asked whether a
	// host worker executes it. It is asked again after askAgain, or after askAway if no host
	// worker does.
	askFirst = 2 * time.Second
	askAgain = 30 * time.Second
	askAway  = time.Second
)

// workerWatch checks, during a request to the queue of a run, whether a host worker can answer
// it. A server keeps such a request waiting without an error.
type workerWatch struct {
	cancel context.CancelFunc
	done   chan struct{}

	absent error // a [*starter.UnansweredError] while no host worker answers; read after done
}

// watchWorkers starts a workerWatch. It calls news on each change: with an error if no host
// worker answers, and with nil when one answers again.
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
			absent := starter.IsError[*starter.UnansweredError](err)
			if err != nil && !absent { // the server is away, which is reported elsewhere
				continue
			}
			changed := absent != (w.absent != nil)
			if w.absent = err; changed {
				news(err)
			}
			if after = askAgain; absent {
				after = askAway
			}
		}
	}()
	return w
}

// end stops the watch. It returns the error if no host worker answered the last check.
func (w *workerWatch) end() error {
	w.cancel()
	<-w.done
	return w.absent
}
