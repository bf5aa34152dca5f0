package tasklog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// readSize is the size of one read.
	readSize = 256 << 10
	// maxHeld is the maximum length of an unfinished line that is held back.
	maxHeld = 64 << 10
	// roundSize limits the bytes that are read from a stream before it is the next stream's turn.
	roundSize = 1 << 20
)

// stream is one file's state.
type stream struct {
	Stream
	path string
	// file is open while the process may write to it, so that it can be read to its end if it is
	// removed. It is nil if too many files are open.
	file *os.File
	// offset is the start of the undelivered part.
	offset int64
	// open reports whether the part delivered so far ends within a line.
	open bool
	// ready reports whether it is in the follower's list.
	ready bool
	// held is the time since when the unfinished line at the end has been held back, or zero.
	held time.Time
}

func (f *Follower) markReady(s *stream) {
	if !s.ready {
		s.ready = true
		f.ready = append(f.ready, s)
	}
}

// readRound reads a limited part of each ready stream, and reports whether any of them has more.
func (f *Follower) readRound() (more bool) {
	round := f.ready
	f.ready = nil
	for _, s := range round {
		s.ready = false
		if f.read(s, s.offset+roundSize, false) {
			more = true
			f.markReady(s)
		}
	}
	return more
}

// read delivers a stream up to an offset, or somewhat further, and reports whether more remains.
// The unfinished line at the end is delivered only if all is true, or if it has been held back long
// enough.
func (f *Follower) read(s *stream, upTo int64, all bool) (more bool) {
	if err := f.open(s); err != nil {
		f.cannotRead(s, err)
		return false
	}
	defer f.closeSurplus(s)
	for {
		n, err := s.file.ReadAt(f.buf, s.offset)
		if err != nil && !errors.Is(err, io.EOF) {
			f.cannotRead(s, err)
			return false
		}
		atEnd := n < len(f.buf)
		if n == 0 {
			s.held = time.Time{}
			if info, err := s.file.Stat(); err == nil && info.Size() < s.offset {
				s.offset = 0 // the file was truncated
				continue
			}
		} else {
			data := f.buf[:n]
			whole := bytes.LastIndexByte(data, '\n') + 1
			if rest := n - whole; rest == 0 {
				s.held = time.Time{}
			} else if all && atEnd || rest >= maxHeld || f.heldLongEnough(s, data[whole:], whole > 0) {
				whole = n
				s.held = time.Time{}
			}
			f.deliver(s, data[:whole])
		}
		if atEnd {
			return false
		}
		if s.offset >= upTo {
			return true
		}
	}
}

// maxOpen limits the files that a follower keeps open.
const maxOpen = 1024

// open opens a stream's file unless it is already open.
func (f *Follower) open(s *stream) error {
	if s.file != nil {
		return nil
	}
	file, err := openToRead(s.path)
	if err != nil {
		return err
	}
	s.file = file
	f.opened++
	return nil
}

// closeSurplus closes a file that need not or cannot be kept open.
func (f *Follower) closeSurplus(s *stream) {
	p := f.newest[s.Rank]
	if f.opened > maxOpen || p == nil || p.attempt != s.Attempt {
		f.closeFile(s)
	}
}

func (f *Follower) closeFile(s *stream) {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
		f.opened--
	}
}

func (f *Follower) deliver(s *stream, data []byte) {
	if len(data) == 0 {
		return
	}
	f.sink(Chunk{Stream: s.Stream, Data: data, Start: !s.open, Offset: s.offset})
	s.offset += int64(len(data))
	s.open = data[len(data)-1] != '\n'
}

func (f *Follower) insert(path string, data []byte) {
	f.scan()
	_, attempt, rank, _ := SplitProcessDir(filepath.Dir(path))
	p := f.processes[processKey{attempt, rank}]
	if p == nil {
		return
	}
	f.finish(p)
	for _, s := range p.streams {
		if s.path == path {
			f.deliver(s, data)
			s.offset -= int64(len(data))
		}
	}
}

// heldLongEnough starts or continues holding back a stream's unfinished line, and reports whether
// that has lasted long enough. The time restarts with each new line. A line with a carriage return
// is a progress bar, and is held for longer.
func (f *Follower) heldLongEnough(s *stream, rest []byte, newLine bool) bool {
	now := time.Now()
	if s.held.IsZero() || newLine {
		s.held = now
	}
	hold := f.opts.Hold
	if bytes.IndexByte(rest, '\r') >= 0 {
		hold *= 10
	}
	return now.Sub(s.held) >= hold
}

// cannotRead reports an error about a stream's file. It is not an error if the file does not exist:
// it may not exist yet, may have been removed, or the output may not be redirected.
func (f *Follower) cannotRead(s *stream, err error) {
	s.held = time.Time{}
	if !errors.Is(err, fs.ErrNotExist) {
		f.fail(s.path, fmt.Errorf("tail: %w", err))
	}
}

// drain finds and delivers all new output.
func (f *Follower) drain() {
	f.scan()
	all := slices.SortedFunc(maps.Values(f.processes), func(a, b *process) int {
		return cmp.Or(cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.rank, b.rank))
	})
	for _, p := range all {
		f.finish(p)
	}
}

// readRemoved reads the rest of a removed file, if the file is still open.
func (f *Follower) readRemoved(s *stream, err error) {
	if s.file == nil {
		f.cannotRead(s, err)
		return
	}
	f.read(s, math.MaxInt64, true)
}

// finish delivers the present content of a process's files. It does not wait for the process's
// later writes.
func (f *Follower) finish(p *process) {
	for _, s := range p.streams {
		if info, err := os.Lstat(s.path); err != nil {
			f.readRemoved(s, err)
		} else if info.Size() != s.offset {
			f.read(s, info.Size(), true)
		}
	}
}
