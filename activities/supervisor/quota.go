package supervisor

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// quota tracks how much the processes of a run write to their output files. It has a lock of
// its own, which may be held while supervisor.mu is acquired: a file may be on a server that
// is gone.
type quota struct {
	mu sync.Mutex
	// bytes is the limit. Output beyond it is dropped, or ends processes.
	bytes int64
	drop  bool
	// ended is the output of processes that have ended, except those stopped for it: after
	// that the others have the whole limit.
	ended   int64
	outputs map[*process]*output
	// watched reports whether a goroutine watches the files.
	watched bool
}

// output is the output of a process.
type output struct {
	files []*watchedFile
	// stopped reports whether it was stopped for writing too much.
	stopped bool
}

// watchedFile is an output file of a process. It is identified by a descriptor, because the
// process may give its name to another file.
type watchedFile struct {
	*os.File
	// kept is its size after the last check, and dropped what was cut off by then, except for
	// what the process wrote at that very moment.
	kept, dropped int64
	// seen is its size at this check. Later output is not part of any decision of this check,
	// or a little more would stay with each check.
	seen int64
}

// watchEvery is how often the sizes of files are checked.
const watchEvery = 100 * time.Millisecond

// watchOutput starts to watch the output files of a process. It must be called before the
// process can write.
func (s *supervisor) watchOutput(p *process, c Command, fds []int) error {
	o := &output{}
	for _, fd := range fds {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		// This opens the same file without O_APPEND, so that we can write at any offset.
		f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_WRONLY, 0)
		if err != nil {
			o.close()
			return &startError{"watching its output for logs.quota: " + reasonOf(err), exitNotExecutable}
		}
		o.files = append(o.files, &watchedFile{File: f})
	}
	q := &p.task.run.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes, q.drop = c.LogQuota, c.LogDrop
	if q.outputs == nil {
		q.outputs = map[*process]*output{}
	}
	q.outputs[p] = o
	if !q.watched {
		q.watched = true
		go s.keepQuota(q)
	}
	return nil
}

// keepQuota watches the files of a run until all of its processes have ended.
func (s *supervisor) keepQuota(q *quota) {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for range ticker.C {
		q.mu.Lock()
		if len(q.outputs) == 0 {
			q.watched = false
			q.mu.Unlock()
			return
		}
		if most := q.look(); most != nil {
			s.mu.Lock()
			s.stopLocked([]*process{most}, unix.SIGKILL, time.Now(), ReasonLogQuota, false)
			s.mu.Unlock()
		}
		q.mu.Unlock()
	}
}

// look drops the excess, or returns the process to stop. mu must be held.
func (q *quota) look() *process {
	over := q.total() - q.bytes
	if q.drop {
		for _, o := range q.outputs {
			over -= o.cut(over, q.bytes)
		}
		return nil
	}
	p := q.loudest(over)
	if p != nil {
		q.outputs[p].stopped = true
	}
	return p
}

// loudest returns the process that has written most if the run is over the limit; nil while a
// process that was stopped for it has not ended. mu must be held.
func (q *quota) loudest(over int64) (most *process) {
	if over <= 0 {
		return nil
	}
	var bytes int64
	for p, o := range q.outputs {
		if o.stopped {
			return nil
		}
		if n := o.size(); n > bytes {
			most, bytes = p, n
		}
	}
	return most
}

// endOutput completes the exit of a process, which may have exceeded the limit since the last
// check.
func (s *supervisor) endOutput(p *process, exit *Exit) {
	q := &p.task.run.quota
	q.mu.Lock()
	defer q.mu.Unlock()
	o := q.outputs[p]
	if o == nil {
		return
	}
	total := q.total()
	switch {
	case q.drop:
		o.cut(total-q.bytes, q.bytes)
	case exit.Reason == ReasonNone && q.loudest(total-q.bytes) == p:
		exit.Reason = ReasonLogQuota
	}
	if exit.Reason == ReasonLogQuota {
		exit.Detail = fmt.Sprintf("the tasks of the run have written %d bytes of output on this host, and logs.quota is %d", total, q.bytes)
	}
	delete(q.outputs, p)
	for _, f := range o.files {
		if f.dropped > 0 {
			f.seen = f.note(f.seen, fmt.Sprintf("clusterrun: at least %d bytes of this output were dropped\n", f.dropped))
		}
		exit.Dropped += f.dropped
	}
	o.close()
	if exit.Reason != ReasonLogQuota {
		q.ended += o.size()
	}
}

func (o *output) close() {
	for _, f := range o.files {
		_ = f.Close()
	}
}

// total checks all files, and returns what the run has written. mu must be held.
func (q *quota) total() int64 {
	n := q.ended
	for _, o := range q.outputs {
		for _, f := range o.files {
			if info, err := f.Stat(); err == nil {
				f.seen = info.Size()
			}
		}
		n += o.size()
	}
	return n
}

// size returns the size at the last check.
func (o *output) size() (n int64) {
	for _, f := range o.files {
		n += f.seen
	}
	return n
}

// cut cuts off at most over of the bytes that were written since the last check, and returns
// how many. The first time it writes a note into the file.
func (o *output) cut(over, quota int64) (n int64) {
	for _, f := range o.files {
		n += f.cut(over-n, quota)
	}
	return n
}

func (f *watchedFile) cut(over, quota int64) int64 {
	n := min(over, f.seen-f.kept)
	if n <= 0 || f.Truncate(f.seen-n) != nil {
		f.kept = f.seen
		return 0
	}
	f.kept = f.seen - n
	if f.dropped == 0 {
		f.kept = f.note(f.kept, fmt.Sprintf("\nclusterrun: further output is dropped: logs.quota is %d bytes\n", quota))
	}
	f.dropped += n
	f.seen = f.kept
	return n
}

// note writes a text as the end of the file, and returns where it ends.
func (f *watchedFile) note(at int64, text string) int64 {
	n, err := f.WriteAt([]byte(text), at)
	if err == nil {
		err = f.Truncate(at + int64(n))
	}
	if err != nil {
		return at
	}
	return at + int64(n)
}
