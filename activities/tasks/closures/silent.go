package closures

import (
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
)

// silentAfter is the time for which a process may be silent after it was given closures and
// before it reports that it has begun them. A process asks again as soon as it is answered;
// otherwise it is frozen, or its interpreter is blocked.
const silentAfter = 10 * time.Second

// watchSilent schedules a check of the processes that were given closures.
func (b *Broker) watchSilent(after time.Duration) {
	if b.silence == nil && !b.isClosed() {
		due := time.Now().Add(after)
		b.silence = time.AfterFunc(after, func() { b.takeFromSilent(due) })
	}
}

// takeFromSilent takes back the closures that silent processes have not begun.
func (b *Broker) takeFromSilent(due time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silence = nil
	if b.isClosed() {
		return
	}
	late := time.Since(due) > silentAfter/4
	next := forever
	for _, p := range b.processes {
		if p.request != nil || len(p.holds) == 0 {
			continue
		}
		if late {
			p.answered = time.Now() // this host was frozen itself, and their requests may be pending
		}
		left := silentAfter - time.Since(p.answered)
		if left <= 0 {
			b.silent(p)
			left = silentAfter
		}
		next = min(next, left)
	}
	if next < forever {
		b.watchSilent(next)
	}
	b.dispatch()
}

// silent takes the closures from a process that it has not reported as begun. After that the
// process does not count as serving until its next request.
func (b *Broker) silent(p *process) {
	var taken []*entry
	for _, e := range p.holds {
		if !e.told && (e.news > p.got || !e.begun) { // others are lost only with the process
			taken = append(taken, e)
		}
	}
	if len(taken) == 0 {
		return
	}
	b.Log.Warn("a process is silent; other processes get the calls that it has not begun",
		zap.String("task", p.task), zap.Int("closures", len(taken)), zap.Duration("for", silentAfter))
	slices.SortFunc(taken, byID)
	for _, e := range taken {
		if p.taken == nil {
			p.taken = map[uint64]uint64{}
		}
		p.taken[e.closure.ID] = e.call
		b.putBack(e)
	}
	if !p.quiet {
		b.slots -= p.serving()
		p.quiet = true
		b.changed()
	}
}

// speaks handles a request of a process that was silent. It keeps the closures that were taken
// from it and that no other process has. The next answer cancels the rest, because another
// process calls them.
func (b *serving) speaks(p *process, in wire.ClosuresRequest) {
	if p.quiet {
		p.quiet = false
		b.slots += p.serving()
		b.changed()
	}
	if len(p.taken) == 0 {
		return
	}
	maps.DeleteFunc(p.taken, func(id, call uint64) bool {
		ended := slices.ContainsFunc(in.Done, func(o wire.CallOutcome) bool { return o.ID == id })
		if !ended && !slices.Contains(in.Held, id) {
			return true
		}
		e := b.entries[id]
		if e == nil || e.state != queued {
			return ended
		}
		b.queue.remove(e)
		p.take(e)
		e.call, e.news, e.at = call, in.Got, time.Now()
		return true
	})
	p.owed = p.owed || len(p.taken) > 0
}
