package tasklog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

type processKey struct{ attempt, rank int }

// process is the state of the directory of one process.
type process struct {
	processKey
	dir string
	// streams are the followed streams.
	streams []*stream
}

// attach watches the directory of the run or, while that does not exist, the lowest existing
// one above it.
func (f *Follower) attach() {
	for {
		at := f.lowestExisting()
		if f.watch.waiting != "" && f.watch.waiting != at {
			f.watch.remove(f.watch.waiting)
		}
		f.watch.waiting = ""
		exists := f.watch.add(at)
		if at == f.dir {
			f.scan(nil)
		} else {
			f.watch.waiting = at
		}
		// A directory that appeared before the watch causes no event. One that was removed
		// before it may exist again, unwatched.
		if exists && f.lowestExisting() == at {
			return
		}
	}
}

func (f *Follower) lowestExisting() string {
	for at := f.dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err == nil && info.IsDir() || at == filepath.Dir(at) {
			return at
		}
		if err == nil {
			f.fail(at, fmt.Errorf("tail: %s is a file", at))
		}
	}
}

// handle handles one event of inotify.
func (f *Follower) handle(e fsnotify.Event) {
	rel, below := strings.CutPrefix(e.Name, f.dir+string(filepath.Separator))
	if !below {
		// It is the run's directory itself, or one above it.
		if e.Name == f.dir || strings.HasPrefix(f.dir, strings.TrimSuffix(e.Name, "/")+"/") {
			f.attach()
		}
		return
	}
	// attempt_<n>[/<rank>[/<file>]]
	parts := strings.Split(rel, string(filepath.Separator))
	n, ok := number(parts[0], attemptPrefix)
	if !ok {
		return
	}
	gone := e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	if len(parts) == 1 {
		if gone {
			f.forget(func(p *process) bool { return p.attempt == n })
		} else {
			f.scanAttempt(n)
		}
		return
	}
	rank, ok := number(parts[1], "")
	if !ok {
		return
	}
	key := processKey{n, rank}
	switch {
	case len(parts) == 3:
		if p := f.processes[key]; p != nil {
			for _, s := range p.streams {
				if s.path == e.Name {
					f.markReady(s)
				}
			}
		}
	case gone:
		f.forget(func(p *process) bool { return p.processKey == key })
	default:
		f.found(key)
	}
}

// lostTrack handles an overflow of the event queue: everything may have changed.
func (f *Follower) lostTrack(err error) {
	if err != nil {
		f.attach()
		f.lookAtAll()
	}
}

// lookAtAll checks everything that inotify would have reported.
func (f *Follower) lookAtAll() {
	f.scan(nil)
	for _, p := range f.newest {
		for _, s := range p.streams {
			if info, err := os.Lstat(s.path); err != nil {
				f.readRemoved(s, err)
			} else if s.behind(info) {
				f.markReady(s)
			}
		}
	}
}

// scan finds the processes on disk, of the tasks with these ranks or of all. In the latter
// case it drops those that were pruned.
func (f *Follower) scan(ranks []int) {
	f.watch.add(f.dir)
	numbers, err := attempts(f.dir)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		f.lowestExisting() // reports what is in the way
		return
	case err != nil:
		f.fail(f.dir, fmt.Errorf("tail: %w", err))
		return
	}
	if ranks != nil {
		for _, n := range numbers {
			for _, rank := range ranks {
				f.found(processKey{n, rank})
			}
		}
		return
	}
	there := map[processKey]bool{}
	for _, n := range numbers {
		for _, rank := range f.scanAttempt(n) {
			there[processKey{n, rank}] = true
		}
	}
	f.forget(func(p *process) bool { return !there[p.processKey] })
}

func (f *Follower) scanAttempt(n int) (ranks []int) {
	dir := attemptDir(f.dir, n)
	f.watch.add(dir)
	ranks, err := numbered(dir, "")
	if err != nil {
		f.fail(dir, fmt.Errorf("tail: %w", err))
	}
	for _, rank := range ranks {
		f.found(processKey{n, rank})
	}
	return ranks
}

// found starts to follow a process, if it exists.
func (f *Follower) found(key processKey) {
	if f.processes[key] != nil {
		return
	}
	p := &process{processKey: key, dir: ProcessDir(f.dir, key.attempt, key.rank)}
	if info, err := os.Stat(p.dir); errors.Is(err, fs.ErrNotExist) {
		return
	} else if err == nil && !info.IsDir() {
		f.fail(p.dir, fmt.Errorf("tail: %s is not a directory", p.dir))
		return
	}
	for _, stderr := range []bool{false, true} {
		s := &stream{Stream: Stream{Rank: key.rank, Attempt: key.attempt, Stderr: stderr}}
		s.path = filepath.Join(p.dir, outputs[s.index()])
		if f.opts.Select(s.Stream) {
			s.offset = f.opts.From(s.Stream)
			p.streams = append(p.streams, s)
			f.markReady(s)
		}
	}
	f.processes[key] = p
	last := f.newest[key.rank]
	if last != nil && last.attempt > key.attempt {
		return
	}
	if last != nil {
		// It has ended: it causes no more events, and its output comes first.
		f.watch.remove(last.dir)
		f.finish(last)
		for _, s := range last.streams {
			f.closeFile(s)
		}
		f.opts.OnNext(key.rank, key.attempt)
	}
	f.newest[key.rank] = p
	if len(p.streams) > 0 {
		f.watch.add(p.dir)
	}
}

// forget drops files that no longer exist: after a long run they outnumber the others.
func (f *Follower) forget(gone func(*process) bool) {
	for key, p := range f.processes {
		if !gone(p) {
			continue
		}
		for _, s := range p.streams {
			s.removed = true
			f.readRemoved(s, fs.ErrNotExist)
			f.closeFile(s)
		}
		delete(f.processes, key)
		if f.newest[p.rank] == p {
			delete(f.newest, p.rank)
		}
		delete(f.reported, p.dir)
		for _, s := range p.streams {
			f.release(s)
			delete(f.reported, s.path)
		}
	}
}
