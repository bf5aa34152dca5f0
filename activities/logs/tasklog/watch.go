package tasklog

import (
	"errors"
	"io/fs"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watcher is one inotify instance, or a period for polling. It may be both at once: some
// directories may be watched already when the user's limit is reached.
type watcher struct {
	inotify *fsnotify.Watcher
	events  <-chan fsnotify.Event
	errors  <-chan error
	// poll is the interval at which to check everything; 0 means never.
	poll time.Duration
	// waiting is the directory above the run's that is watched because the run's does not
	// exist yet, or empty if it does.
	waiting string
}

func newWatcher(poll time.Duration) *watcher {
	w := &watcher{poll: poll}
	if poll > 0 {
		return w
	}
	// The buffer saves a goroutine switch per event.
	inotify, err := fsnotify.NewBufferedWatcher(1024)
	if err != nil {
		w.poll = pollEvery // no instances are left, or there is no inotify
		return w
	}
	w.inotify, w.events, w.errors = inotify, inotify.Events, inotify.Errors
	return w
}

// add watches a directory and reports whether it exists. A directory that does not exist is
// not watched; its parent shows when it appears.
func (w *watcher) add(dir string) (exists bool) {
	if w.inotify == nil {
		return true
	}
	err := w.inotify.Add(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil && w.poll == 0 {
		w.poll = pollEvery // usually the user's watches are used up
	}
	return true
}

func (w *watcher) remove(dir string) {
	if w.inotify != nil {
		_ = w.inotify.Remove(dir) // it may have been removed with its directory
	}
}

func (w *watcher) close() {
	if w.inotify != nil {
		_ = w.inotify.Close()
	}
}
