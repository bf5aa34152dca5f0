package tasklog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
)

// TimesFile records the sizes of a process's output over time, since the process's lines do not
// contain times. Each change in size adds a line:
//
//	<nanoseconds since 1970> <bytes of stdout> <bytes of stderr>
//
// Everything before these offsets had been written by this time.
const TimesFile = "times"

// maxTimes limits the file. When it is reached, every second line is dropped, so that a long life
// is recorded more coarsely, but evenly from start to end.
const maxTimes = 1 << 20

// clockTick is the maximum time by which a file's modification time can precede the actual write.
// The kernel uses the time of its last tick, and there are at least 100 ticks per second.
const clockTick = 20 * time.Millisecond

// Times writes a process's [TimesFile]. A line that cannot be written is skipped, and a later line
// makes up for it.
type Times struct {
	dir string
	max int64

	written atomic.Int64
	latest  atomic.Int64 // the time of that write, in nanoseconds since 1970, or 0 if there was none

	mu    sync.Mutex
	known bool // last is the last record in the file
	last  record
}

// record is a line of the file.
type record struct {
	at    int64 // nanoseconds since 1970
	sizes [2]int64
}

// NewTimes returns the Times of the process with the given directory ([ProcessDir]).
func NewTimes(processDir string) *Times { return &Times{dir: processDir, max: maxTimes} }

// Note records the current size of the output, which may grow before it returns. It may block as
// long as the file system does; concurrent calls return immediately.
func (t *Times) Note() {
	if t.dir != "" && t.mu.TryLock() {
		defer t.mu.Unlock()
		t.note(time.Time{})
	}
}

// NoteEnd records the output of a process that exited at the given time, which may be long ago.
func (t *Times) NoteEnd(ended time.Time) {
	if t.dir != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.note(ended)
	}
}

// Written returns the output's size in bytes at the last check.
func (t *Times) Written() int64 { return t.written.Load() }

// Latest returns the time of the last write, as found by the last check, or zero if there is no
// output.
func (t *Times) Latest() time.Time {
	if at := t.latest.Load(); at > 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

func (t *Times) note(ended time.Time) {
	r, written := look(t.dir)
	t.written.Store(r.sizes[0] + r.sizes[1])
	t.latest.Store(written.UnixNano())
	// Take the time after the sizes, so that everything that they cover was written before this
	// time.
	r.at = time.Now().UnixNano()
	if !ended.IsZero() {
		// The process's children may have written after its exit.
		r.at = max(ended.UnixNano(), written.Add(clockTick).UnixNano())
	}
	if !t.known {
		t.last, t.known = lastRecord(t.dir), true
	}
	if r.sizes != t.last.sizes && t.append(r) == nil {
		t.last = r
	}
}

// look returns the sizes of the output, and when the output was last written.
func look(dir string) (r record, written time.Time) {
	for i, name := range outputs {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			r.sizes[i] = info.Size()
			if info.Size() > 0 && info.ModTime().After(written) {
				written = info.ModTime()
			}
		}
	}
	if written.IsZero() {
		written = time.Unix(0, 0)
	}
	return r, written
}

// outputs are the names of the two streams' files.
var outputs = [2]string{StdoutFile, StderrFile}

func (s Stream) index() int {
	if s.Stderr {
		return 1
	}
	return 0
}

func (t *Times) append(r record) error {
	path := filepath.Join(t.dir, TimesFile)
	f, info, err := openRegular(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, FileMode(t.dir))
	if err != nil {
		return err
	}
	defer f.Close()
	line := r.line()
	if size := info.Size(); size > t.max {
		return t.coarsen(append(readTimes(t.dir), r))
	} else if size > 0 {
		var end [1]byte
		if _, err := f.ReadAt(end[:], size-1); err == nil && end[0] != '\n' {
			line = append([]byte("\n"), line...) // the writer was killed while it wrote that line
		}
	}
	_, err = f.Write(line)
	return err
}

// coarsen writes every second record, and always the last one.
func (t *Times) coarsen(all []record) error {
	var b []byte
	for i := (len(all) - 1) % 2; i < len(all); i += 2 {
		b = append(b, all[i].line()...)
	}
	return atomicfile.Write(filepath.Join(t.dir, TimesFile), b, FileMode(t.dir))
}

func (r record) line() []byte {
	b := strconv.AppendInt(nil, r.at, 10)
	for _, size := range r.sizes {
		b = strconv.AppendInt(append(b, ' '), size, 10)
	}
	return append(b, '\n')
}

// readTimes reads a file's valid records.
func readTimes(dir string) []record {
	// A process may have replaced the file.
	b, _, err := ReadFile(filepath.Join(dir, TimesFile), 2*maxTimes)
	if err != nil {
		return nil
	}
	var all []record
	for line := range bytes.Lines(b) {
		if r, err := parseRecord(line); err == nil {
			all = append(all, r)
		}
	}
	return all
}

// lastRecord returns the last record in the file, or a zero record.
func lastRecord(dir string) (last record) {
	end, _ := tailOf(filepath.Join(dir, TimesFile), 512)
	for line := range bytes.Lines(end) {
		// The first line may be the end of a longer one, which does not matter, because more
		// records follow.
		if r, err := parseRecord(line); err == nil {
			last = r
		}
	}
	return last
}

func parseRecord(line []byte) (r record, err error) {
	fields := bytes.Fields(line)
	if len(fields) != 3 || line[len(line)-1] != '\n' {
		return r, errors.New("no complete record")
	}
	numbers := []*int64{&r.at, &r.sizes[0], &r.sizes[1]}
	for i, f := range fields {
		if *numbers[i], err = strconv.ParseInt(string(f), 10, 64); err != nil || *numbers[i] < 0 {
			return r, errors.New("no number")
		}
	}
	return r, nil
}

// Since returns a function that returns the offset of a stream's output after the given time. The
// offset is at the start of a line, and is too early rather than too late. If no times are
// recorded, it is 0 or, if the stream has not been written since, the end of the stream. It is for
// [FollowOptions.From].
func Since(runDir string, at time.Time) func(Stream) int64 {
	return func(s Stream) int64 {
		dir, i := ProcessDir(runDir, s.Attempt, s.Rank), s.index()
		path := filepath.Join(dir, outputs[i])
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return 0
		}
		if !info.ModTime().Add(clockTick).After(at) {
			return info.Size()
		}
		from := int64(0)
		for _, r := range readTimes(dir) {
			// Stop at the first later record, because the clock may have been set back.
			if r.at > at.UnixNano() {
				break
			}
			from = r.sizes[i]
		}
		if from > info.Size() {
			return 0 // the file is not the one that was recorded
		}
		return startOfLine(path, from)
	}
}

// startOfLine returns where the line with this offset starts or, in a very long line, a place
// within it.
func startOfLine(path string, offset int64) int64 {
	f, err := openToRead(path)
	if err != nil || offset == 0 {
		return 0
	}
	defer f.Close()
	from := max(0, offset-maxHeld)
	before := make([]byte, offset-from)
	n, _ := f.ReadAt(before, from)
	if i := bytes.LastIndexByte(before[:n], '\n'); i >= 0 {
		return from + int64(i) + 1
	}
	return from
}
