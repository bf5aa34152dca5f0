package tasklog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

type processKey struct{ attempt, rank int }

// process is one process directory's state.
type process struct {
	processKey
	dir string
	// streams lists the streams that are followed.
	streams []*stream
}

// lookAtAll finds new processes, and new output of those that are followed.
func (f *Follower) lookAtAll() {
	f.scan()
	for _, p := range f.newest {
		for _, s := range p.streams {
			if info, err := os.Lstat(s.path); err != nil {
				f.readRemoved(s, err)
			} else if info.Size() != s.offset {
				f.markReady(s)
			}
		}
	}
}

// scan finds the processes on disk, and drops those that were pruned.
func (f *Follower) scan() {
	numbers, err := attempts(f.dir)
	if err != nil {
		f.fail(f.dir, fmt.Errorf("tail: %w", err))
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
	ranks, err := numbered(dir, "")
	if err != nil {
		f.fail(dir, fmt.Errorf("tail: %w", err))
	}
	for _, rank := range ranks {
		f.found(processKey{n, rank})
	}
	return ranks
}

// found starts following a process, if it exists.
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
		// The previous process has exited, and its output comes first.
		f.finish(last)
		for _, s := range last.streams {
			f.closeFile(s)
		}
		f.opts.OnNext(key.rank, key.attempt)
	}
	f.newest[key.rank] = p
}

// forget drops files that no longer exist, because during a long run they would come to outnumber
// those that do.
func (f *Follower) forget(gone func(*process) bool) {
	for key, p := range f.processes {
		if !gone(p) {
			continue
		}
		for _, s := range p.streams {
			f.readRemoved(s, fs.ErrNotExist)
			f.closeFile(s)
		}
		delete(f.processes, key)
		if f.newest[p.rank] == p {
			delete(f.newest, p.rank)
		}
		delete(f.reported, p.dir)
		for _, s := range p.streams {
			delete(f.reported, s.path)
		}
	}
}
