package task

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/news"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

const (
	// watchWait is the time that one request of a watch waits at the host.
	watchWait = time.Minute
	// firstPatience is the time that the first caller waits for the first answer of a host that
	// is away.
	firstPatience = time.Second
)

// watch follows whether the tasks of the run must stop, with one waiting request to the host
// for all callers in this process. It lasts as long as the process.
type watch struct {
	news.Feed[heard]
	start sync.Once
	// heard is closed when the host has answered, or takes too long.
	heard chan struct{}
	// over is closed when the host no longer answers. err is the reason.
	over chan struct{}
	err  error
}

// heard is a state, with the time at which this process learned of it.
type heard struct {
	Stopping
	at time.Time
}

// watching returns the watch, which has started and has the first state, unless the host is
// away.
func (t *Task) watching() *watch {
	w := &t.watch
	w.start.Do(func() {
		w.heard, w.over = make(chan struct{}), make(chan struct{})
		var once sync.Once
		heard := func() { once.Do(func() { close(w.heard) }) }
		late := time.AfterFunc(firstPatience, heard)
		go func() {
			defer late.Stop()
			w.err = t.keepUp(heard)
			close(w.over)
			heard()
		}()
	})
	select {
	case <-w.heard:
	default: // spares later calls the lock of a channel
		<-w.heard
	}
	return w
}

// keepUp follows the state. It returns the error with which the host refuses to continue.
func (t *Task) keepUp(heard func()) error {
	path := wire.PathStop
	for {
		var now Stopping
		// call retries while the host is away.
		if err := t.call(context.Background(), http.MethodGet, path, nil, &now); err != nil {
			return err
		}
		t.watch.learn(now)
		heard()
		path = fmt.Sprintf("%s?wait=%s&after=%d", wire.PathStop, watchWait, t.watch.Latest().Value.Seq)
	}
}

// learn records a state, unless a later one is known: a restarted host worker may not know
// the latest one yet.
func (w *watch) learn(said Stopping) {
	w.Add(heard{said, time.Now()}, func(known heard) bool { return said.Seq > known.Seq })
}
