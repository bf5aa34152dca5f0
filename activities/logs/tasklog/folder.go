package tasklog

import (
	"sync"
	"time"
)

// Folder shows chunks on a console, and merges identical lines of several tasks.
type Folder struct {
	console *Console

	mu    sync.Mutex
	rule  *Fold
	timer *time.Timer
	// everywhere reports whether lines are folded even if they do not go to a terminal.
	everywhere bool
	// before is called before something is shown.
	before func()
}

// NewFolder returns a folder for the output of a run with the given number of tasks. It folds
// output to a terminal and, if everywhere is set, all other output. If nothing would be folded,
// NewFolder returns nil. before is called before something is shown.
func NewFolder(console *Console, tasks int, everywhere bool, before func()) *Folder {
	if tasks < 2 || !everywhere && !console.out.place.terminal && !console.err.place.terminal {
		return nil
	}
	f := &Folder{console: console, rule: NewFold(tasks), everywhere: everywhere, before: before}
	f.timer = time.AfterFunc(time.Hour, f.tick)
	return f
}

// Deliver accepts a chunk; it is a sink for a [Follower].
func (f *Folder) Deliver(c Chunk) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.everywhere && !f.console.outputOf(c.Stderr).place.terminal {
		f.before()
		f.console.Deliver(c)
		return
	}
	f.show(f.rule.Add(time.Now(), c))
}

func (f *Folder) tick() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.show(f.rule.Due(time.Now()))
}

// Rest shows all waiting lines.
func (f *Folder) Rest() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.show(f.rule.Rest())
}

// show shows lines, and sets the timer for the next one. f.mu must be held.
func (f *Folder) show(all []Alike) {
	if len(all) > 0 {
		f.before()
	}
	for _, a := range all {
		if len(a.Ranks) > 1 {
			f.console.Alike(a.Prefix(), a.Chunk)
		} else {
			f.console.Deliver(a.Chunk)
		}
	}
	if at, waits := f.rule.Next(); waits {
		f.timer.Reset(time.Until(at))
	} else {
		f.timer.Stop()
	}
}
