package tasklog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/activities/system/hostuser"
)

// filteredPrefix starts the names of a [Collector]'s files.
const filteredPrefix = "filtered_"

// maxMatched limits how much of a line is searched for the strings.
const maxMatched = maxHeld

// CollectOptions configures a [Collector].
type CollectOptions struct {
	// Stdout and Stderr list strings. A line is collected if it contains a string listed for its
	// stream.
	Stdout, Stderr []string
	// Prefix returns the start of a process's lines. It is called once per process.
	Prefix func(rank, attempt int) string
	// Select reports whether a task's output is collected. If it is nil, all tasks' output is
	// collected.
	Select func(rank int) bool
	// Name is part of the file names, to distinguish hosts that write to one directory.
	Name string
	// OnError is called with file errors.
	OnError func(error)
	// As is the owner of the files; see [FollowOptions].
	As *hostuser.User
}

// Collector copies lines of many processes that contain certain strings, as they are written, to
// one file per attempt and stream:
//
//	<run dir>/attempt_<n>/filtered_stdout.log filtered_stderr.log
//
// A new collector rewrites these files from the beginning of all existing logs, so it does not
// matter how far its predecessor got.
//
// Lines are matched as a whole; if a line is longer than 64 KiB, only its first 64 KiB are matched.
// Such a line may be interrupted by another task's line, and then continues after a second prefix.
type Collector struct {
	CollectOptions
	dir    string
	follow *Follower

	// Only the follower's goroutine uses the fields below.

	seen     map[int]bool            // by attempt
	lines    map[Stream]bool         // unfinished lines, and whether they match
	cursors  map[filteredFile]Stream // the stream of the unfinished line that ends a file
	prefixes prefixes
	buf      []byte
}

// filteredFile identifies one of a run's files.
type filteredFile struct {
	attempt int
	stderr  bool
}

// Collect starts collecting the lines of the run with the given directory.
func Collect(runDir string, o CollectOptions) *Collector {
	if o.Select == nil {
		o.Select = func(int) bool { return true }
	}
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	if o.Prefix == nil {
		o.Prefix = func(int, int) string { return "" }
	}
	c := &Collector{
		CollectOptions: o, dir: runDir,
		seen: map[int]bool{}, lines: map[Stream]bool{}, cursors: map[filteredFile]Stream{}, prefixes: prefixes{},
	}
	c.follow = Follow(runDir, c.deliver, FollowOptions{Select: c.wants, OnError: o.OnError, Hold: WholeLines, As: o.As})
	return c
}

// Stop collects the lines that exist and then stops. If ctx is done first, Stop returns ctx's
// error, and the collector stops later.
func (c *Collector) Stop(ctx context.Context) error { return c.follow.Stop(ctx) }

func (c *Collector) texts(stderr bool) []string {
	if stderr {
		return c.Stderr
	}
	return c.Stdout
}

func (c *Collector) wants(s Stream) bool {
	if len(c.texts(s.Stderr)) == 0 || !c.Select(s.Rank) {
		return false
	}
	if !c.seen[s.Attempt] {
		c.seen[s.Attempt] = true
		c.begin(s.Attempt)
	}
	return true
}

// begin creates empty files for an attempt.
func (c *Collector) begin(attempt int) {
	for _, stderr := range []bool{false, true} {
		if len(c.texts(stderr)) == 0 {
			continue
		}
		path := c.path(filteredFile{attempt, stderr})
		f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, FileMode(filepath.Dir(path)))
		if err == nil {
			err = f.Close()
		}
		c.check(err)
	}
}

func (c *Collector) path(o filteredFile) string {
	name := strings.TrimSuffix(outputs[Stream{Stderr: o.stderr}.index()], ".log")
	if c.Name != "" {
		name += "." + fileName(c.Name)
	}
	return filepath.Join(attemptDir(c.dir, o.attempt), filteredPrefix+name+".log")
}

// deliver is the follower's sink.
func (c *Collector) deliver(chunk Chunk) {
	to := filteredFile{chunk.Attempt, chunk.Stderr}
	goesOn := !chunk.Start
	for data := chunk.Data; len(data) > 0; goesOn = false {
		var line []byte
		line, data = firstLine(data)
		wanted := c.lines[chunk.Stream]
		if !goesOn {
			wanted = c.matches(chunk.Stderr, line)
		}
		ends := line[len(line)-1] == '\n'
		if wanted {
			c.add(to, chunk.Stream, line, goesOn, ends)
		}
		if ends {
			delete(c.lines, chunk.Stream)
		} else {
			c.lines[chunk.Stream] = wanted
		}
		if len(c.buf) >= readSize {
			c.flush(to)
		}
	}
	c.flush(to)
}

func (c *Collector) matches(stderr bool, line []byte) bool {
	line = bytes.TrimSuffix(line[:min(len(line), maxMatched)], []byte("\n"))
	return slices.ContainsFunc(c.texts(stderr), func(text string) bool { return bytes.Contains(line, []byte(text)) })
}

// add appends a line, or the rest of one, to the file.
func (c *Collector) add(to filteredFile, s Stream, line []byte, goesOn, ends bool) {
	last, open := c.cursors[to]
	if open && (!goesOn || last != s) {
		c.buf = append(c.buf, '\n')
	}
	if !goesOn || !open || last != s {
		c.buf = append(c.buf, c.prefixes.of(s, c.Prefix)...)
	}
	c.buf = append(c.buf, line...)
	if ends {
		delete(c.cursors, to)
	} else {
		c.cursors[to] = s
	}
}

// flush writes what was added. The file is open only during the write, because there may be many
// attempts, each with its own file.
func (c *Collector) flush(to filteredFile) {
	if len(c.buf) == 0 {
		return
	}
	f, err := os.OpenFile(c.path(to), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(c.buf)
		err = errors.Join(err, f.Close())
	}
	c.check(err)
	c.buf = c.buf[:0]
}

// check reports an error, unless the attempt has been pruned since.
func (c *Collector) check(err error) {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.OnError(fmt.Errorf("filtered output: %w", err))
	}
}
