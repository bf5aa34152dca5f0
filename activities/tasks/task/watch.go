package task

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

const (
	// watchWait limits the wait of a watch's request at the host.
	watchWait = time.Minute
	// firstPatience limits the first caller's wait for an absent host's first answer.
	firstPatience = time.Second
)

// watch follows whether the run's tasks must stop, with one waiting request to the host for all
// callers in this process. It lasts as long as the process.
type watch struct {
	background.Feed[heard]
	start sync.Once
	// heard is closed when the host has answered, or takes too long.
	heard chan struct{}
	// over is closed when the host no longer answers. err is the reason.
	over chan struct{}
	err  error
}

// heard is a state, with the time when this process received it.
type heard struct {
	Stopping
	at time.Time
}

// watching returns the watch. It has started and holds the first state, unless the host is away.
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
	default: // saves later calls a channel's lock
		<-w.heard
	}
	return w
}

// keepUp follows the state. It returns the host's error when the host refuses to continue.
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

// learn records a state, unless a later one is known, because a restarted host worker may lack the
// latest one.
func (w *watch) learn(said Stopping) {
	w.Add(heard{said, time.Now()}, func(known heard) bool { return said.Seq > known.Seq })
}
