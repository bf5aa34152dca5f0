package supervisor

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
)

// outputs is what the processes of a run write to their files, and a limit of that.
type outputs struct {
	copiers [4]copier // used are as many as there are processors, at most
	single  bool      // one is used
	// stop is called with a process that has written too much. mu is not held then.
	stop func(*process)

	mu sync.Mutex
	of map[*process]*output
	// next counts the processes.
	next int
	// bytes is the limit; 0 is none. Output beyond it is dropped, or ends processes.
	bytes int64
	drop  bool
	// written is what the run has written, except for processes that were stopped for it: after
	// their end the others have the whole limit.
	written int64
}

// output is what a process writes. All of its streams have one copier, so that they are copied
// in the order in which they are written.
type output struct {
	copier  *copier
	streams []*stream
	// written is how many bytes of it are in files, and dropped how many are not.
	written, dropped int64
	// stopped reports whether the process was stopped for writing too much.
	stopped bool
}

// begin copies the streams of a process from now on, and owns them. It must be called before
// the process can write.
func (o *outputs) begin(p *process, c Command, streams []*stream, stop func(*process)) error {
	o.mu.Lock()
	o.stop, o.bytes, o.drop = stop, c.LogQuota, c.LogDrop
	made := o.enterLocked(&output{streams: streams})
	if o.of == nil {
		o.of = make(map[*process]*output)
	}
	o.of[p] = made
	o.mu.Unlock()
	err := made.copier.add(streams)
	if err != nil {
		o.mu.Lock()
		delete(o.of, p)
		o.mu.Unlock()
		return &startError{"copying its output: " + reasonOf(err), exitcode.NotExecutable}
	}
	return nil
}

// enterLocked gives an output its copier. A file is written by one thread at a time, and a
// processor may not be enough for all files.
func (o *outputs) enterLocked(out *output) *output {
	most := min(len(o.copiers), runtime.GOMAXPROCS(0))
	if o.single {
		most = 1
	}
	out.copier = &o.copiers[o.next%most]
	if out.copier.of == nil {
		out.copier.of = o
	}
	o.next++
	for _, s := range out.streams {
		s.output = out
	}
	return out
}

// end completes the exit of a process once what it has written is in its files. Nothing that is
// known to belong to the process may be alive.
func (o *outputs) end(p *process, exit *Exit) {
	o.mu.Lock()
	out := o.of[p]
	o.mu.Unlock()
	if out == nil {
		return
	}
	out.copier.end(out.streams)
	o.mu.Lock()
	defer o.mu.Unlock()
	exit.Dropped += out.dropped
	// It may have written too much since the last check.
	if exit.Reason == ReasonNone && (out.stopped || o.loudestLocked() == p) {
		exit.Reason = ReasonLogQuota
	}
	delete(o.of, p)
	if exit.Reason == ReasonLogQuota {
		exit.Detail = fmt.Sprintf("the tasks of the run have written %d bytes of output on this host, and logs.quota is %d", o.written, o.bytes)
		o.written -= out.written
	}
}

// close copies what is there and ends.
func (o *outputs) close() {
	for i := range o.copiers {
		o.copiers[i].close()
	}
}

// admit returns how many of n bytes may be written, and counts them as written. The others are
// dropped.
func (o *outputs) admit(out *output, n int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if room := max(0, o.bytes-o.written); o.drop && o.bytes > 0 && int64(n) > room {
		out.dropped += int64(n) - room
		n = int(room)
	}
	out.written += int64(n)
	o.written += int64(n)
	return n
}

// miss counts bytes that were admitted and could not be written.
func (o *outputs) miss(out *output, bytes int64) {
	if bytes == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	out.written -= bytes
	o.written -= bytes
	out.dropped += bytes
}

func (o *outputs) quota() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes
}

// stopExcess stops the process that has written most if the run is over the limit.
func (o *outputs) stopExcess() {
	o.mu.Lock()
	p, stop := o.loudestLocked(), o.stop
	if p != nil {
		o.of[p].stopped = true
	}
	o.mu.Unlock()
	if p != nil {
		stop(p)
	}
}

// loudestLocked returns the process that has written most if the run is over the limit; nil
// while a process that was stopped for it has not ended.
func (o *outputs) loudestLocked() (most *process) {
	if o.drop || o.bytes == 0 || o.written <= o.bytes {
		return nil
	}
	var bytes int64
	for p, out := range o.of {
		if out.stopped {
			return nil
		}
		if out.written > bytes {
			most, bytes = p, out.written
		}
	}
	return most
}

// stopLoud stops a process that has written too much.
func (s *supervisor) stopLoud(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopLocked([]*process{p}, unix.SIGKILL, time.Now(), ReasonLogQuota, false)
}

// endOutput completes the exit of a process when its output is complete. The disk of the files
// may hang, or the reader of the owner's output pause, so it does not wait without limit.
func (s *supervisor) endOutput(p *process, exit *Exit) {
	written := make(chan Exit, 1)
	e := *exit
	go func() {
		for _, o := range []*outputs{&p.task.run.output, &s.relays[0], &s.relays[1]} {
			o.end(p, &e)
		}
		for _, end := range p.unkept {
			end.sayUnkept()
		}
		written <- e
	}()
	late := time.NewTimer(s.cfg.KillBound)
	defer late.Stop()
	select {
	case *exit = <-written:
	case <-late.C:
		s.log.Error("A process has ended, but its last output cannot be written yet.", zap.Stringer("task", p.Key))
	}
}
