package tasklog

import (
	"errors"
	"io/fs"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watcher is one inotify instance, or a period for polling. Both at once is
// possible: some directories may be watched when the user's limit is reached.
type watcher struct {
	inotify *fsnotify.Watcher
	events  <-chan fsnotify.Event
	errors  <-chan error
	// poll is how often to look at everything; 0: no need.
	poll time.Duration
	// waiting is the directory above the run's that is watched because the
	// run's does not exist yet. Empty: it does.
	waiting string
}

func newWatcher(poll time.Duration) *watcher {
	w := &watcher{poll: poll}
	if poll > 0 {
		return w
	}
	// The buffer spares a switch of goroutines per event.
	inotify, err := fsnotify.NewBufferedWatcher(1024)
	if err != nil {
		w.poll = pollEvery // no instance is left, or there is no inotify
		return w
	}
	w.inotify, w.events, w.errors = inotify, inotify.Events, inotify.Errors
	return w
}

// add watches a directory and reports whether it exists. One that does not is
// not watched; that it appears is seen from above.
func (w *watcher) add(dir string) (exists bool) {
	if w.inotify == nil {
		return true
	}
	err := w.inotify.Add(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil && w.poll == 0 {
		w.poll = pollEvery // most often: the user's watches are used up
	}
	return true
}

func (w *watcher) remove(dir string) {
	if w.inotify != nil {
		_ = w.inotify.Remove(dir) // it may be gone with its directory
	}
}

func (w *watcher) close() {
	if w.inotify != nil {
		_ = w.inotify.Close()
	}
}
