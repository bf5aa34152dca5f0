package output

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/fault"
)

// Outputs copies the output of a run's processes to their files, within a limit.
type Outputs struct {
	copiers [4]copier // no more than one per processor are used
	// Single limits the outputs to one copier, so that lines of different processes are not mixed.
	Single bool

	taker atomic.Pointer[context.Context] // see Take

	mu sync.Mutex
	of map[*Output]bool
	// next is the number of outputs so far.
	next int
	// bytes is the limit; 0 means no limit. If it is exceeded, the excess is dropped or processes
	// are stopped.
	bytes int64
	drop  bool
	// written counts the run's bytes, without the output of processes that were stopped for it.
	// After they end, the remaining processes share the whole limit.
	written int64
}

// Output is a process's output. One copier serves all its streams, so that they are copied in the
// order they are written.
type Output struct {
	all     *Outputs
	copier  *copier
	streams []*Stream
	stop    func() // see Begin
	// written is the number of its bytes that are in files, and dropped the number of those that
	// are not.
	written, dropped int64
	// stopped reports whether the process was stopped for writing too much.
	stopped bool
}

// Quota limits what a run's processes write.
type Quota struct {
	Bytes int64 // 0 means no limit
	// Drop reports whether excess output is dropped. If false, the process that has written most is
	// stopped.
	Drop bool
}

// Begin starts copying a process's streams, which it then owns. It must be called before the
// process can write. stop is called if the process writes too much.
func (o *Outputs) Begin(quota Quota, streams []*Stream, stop func()) (*Output, error) {
	o.mu.Lock()
	o.bytes, o.drop = quota.Bytes, quota.Drop
	made := o.enterLocked(&Output{all: o, streams: streams, stop: stop})
	if o.of == nil {
		o.of = make(map[*Output]bool)
	}
	o.of[made] = true
	o.mu.Unlock()
	err := made.copier.add(streams)
	if err != nil {
		o.mu.Lock()
		delete(o.of, made)
		o.mu.Unlock()
		return nil, fault.Failed("copying its output", err)
	}
	return made, nil
}

// enterLocked assigns a copier to an output. Only one thread writes a file at a time, but a single
// processor may not suffice for all files.
func (o *Outputs) enterLocked(out *Output) *Output {
	most := min(len(o.copiers), runtime.GOMAXPROCS(0))
	if o.Single {
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

// End returns once the process's output is in its files. No process that is known to belong to it
// may be alive. dropped is the number of bytes that are not in the files.
//
// excess is not empty if the process ended because it wrote too much. This is the case if it was
// blamed, by the function that Begin received as stop, or if there is no other reason.
func (out *Output) End(blamed, other bool) (dropped int64, excess string) {
	out.copier.end(out.streams)
	o := out.all
	o.mu.Lock()
	defer o.mu.Unlock()
	// The process may have written too much since the last check.
	if !other && (out.stopped || o.loudestLocked() == out) {
		blamed = true
	}
	delete(o.of, out)
	if blamed && o.bytes > 0 {
		excess = fmt.Sprintf("the run's tasks have written %d bytes of output on this host, but logs.quota is %d", o.written, o.bytes)
		o.written -= out.written
	}
	return out.dropped, excess
}

// Close copies what is left and stops.
func (o *Outputs) Close() {
	for i := range o.copiers {
		o.copiers[i].close()
	}
}

// Unkept is output that does not fit on its file's disk.
type Unkept struct {
	Path string // of the file
	Data []byte
}

// Take returns output that has waited too long because of a full disk, in the order of each stream.
// This output is not written to the files. Until taker is canceled, programs wait for their output
// to be taken.
func (o *Outputs) Take(taker context.Context) (all []Unkept) {
	o.taker.Store(&taker)
	for i := range o.copiers {
		all = append(all, o.copiers[i].take()...)
	}
	return all
}

// admit returns how many of n bytes may be written, and counts them as written. The rest is
// dropped.
func (o *Outputs) admit(out *Output, n int) int {
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

// miss counts admitted bytes that could not be written.
func (o *Outputs) miss(out *Output, bytes int64) {
	if bytes == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	out.written -= bytes
	o.written -= bytes
	out.dropped += bytes
}

func (o *Outputs) quota() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes
}

// stopExcess stops the process with the most output if the run is over the limit.
func (o *Outputs) stopExcess() {
	o.mu.Lock()
	loud := o.loudestLocked()
	if loud != nil {
		loud.stopped = true
	}
	o.mu.Unlock()
	if loud != nil {
		loud.stop()
	}
}

// loudestLocked returns the largest output if the run is over the limit. It returns nil while a
// process that was stopped for this reason has not ended.
func (o *Outputs) loudestLocked() (most *Output) {
	if o.drop || o.bytes == 0 || o.written <= o.bytes {
		return nil
	}
	var bytes int64
	for out := range o.of {
		if out.stopped {
			return nil
		}
		if out.written > bytes {
			most, bytes = out, out.written
		}
	}
	return most
}
