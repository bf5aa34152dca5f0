package closures

import (
	"maps"
	"os"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

type processKey struct{ task, name string }

// process is a process that serves closures.
type process struct {
	processKey
	slots     int
	functions []string // sorted
	has       map[string]bool

	// seq is the number of its newest request, and news the number of the last answer with
	// news.
	seq, news uint64
	// unread is the last answer with news, until the process acknowledges it.
	unread *unread
	// owed reports whether cancellations or releases must be sent to it.
	owed bool
	// got is the number of the last answer with news that it has read, and answered is the time
	// of the answer to its last waiting request.
	got      uint64
	answered time.Time
	// quiet reports whether it was silent for so long that closures were taken from it. taken
	// has the numbers of those calls, by closure, as long as the process may still hold them.
	quiet bool
	taken map[uint64]uint64
	// holds are the closures that it has, by ID.
	holds map[uint64]*entry
	// built are the resources whose definitions it has received.
	built map[uint64]bool
	// released are resources whose release it has not acknowledged, and releasedBy is the
	// number of the first answer with all of them, or 0 if there is none yet.
	released   ranges
	releasedBy uint64
	// took is the duration of a call of each function, in seconds.
	took map[string]float64
	// request is its waiting request.
	request *waiting
	// restarted is the time of the last request for its restart.
	restarted time.Time
	// watched is the pidfd by which the kernel reports its end.
	watched *os.File
}

// unread is the content of an answer that may not have arrived.
type unread struct {
	closures  []*entry
	calls     []uint64 // of the closures, then
	resources []closure.Resource
}

// waiting is a request that waits for its answer.
type waiting struct {
	free   int
	answer chan wire.ClosuresAnswer // has room for it
}

// serves reports whether the process takes closures.
func (p *process) serves() bool { return p.slots > 0 && len(p.functions) > 0 && !p.quiet }

// introduce records the slots and functions of a process from a request.
func (b *serving) introduce(p *process, slots int, functions []string) {
	before, served := p.slots, p.serves()
	p.slots = slots
	changed := p.slots != before
	functions = slices.Sorted(slices.Values(functions))
	if len(functions) > 0 && !slices.Equal(functions, p.functions) {
		p.functions, p.has = functions, map[string]bool{}
		for _, f := range p.functions {
			p.has[f] = true
		}
		maps.DeleteFunc(p.took, func(f string, _ float64) bool { return !p.has[f] })
		b.known[p.task] = p.has
		changed = true
	}
	b.slots += p.serving() - servingOf(served, before)
	if changed && (served || p.serves()) {
		b.changed()
	}
}

// serving returns the number of slots with which it serves.
func (p *process) serving() int { return servingOf(p.serves(), p.slots) }

func servingOf(serves bool, slots int) int {
	if serves {
		return slots
	}
	return 0
}

// forget removes a process for good.
func (b *serving) forget(p *process) {
	b.gone.add(p.processKey)
	p.unwatch()
	b.slots -= p.serving()
	b.answer(p, wire.ClosuresAnswer{})
	delete(b.processes, p.processKey)
	if p.serves() {
		b.changed()
	}
	b.watchStranded()
}

// learn records the duration of a call.
func (p *process) learn(function string, seconds float64) {
	if !p.has[function] {
		return
	}
	before, known := p.took[function]
	if known {
		// A call that takes longer than before counts for more: batches that are too small
		// are better than batches that are too large.
		weight := 1.0 / 8
		if seconds > before {
			weight = 1.0 / 2
		}
		seconds = before + weight*(seconds-before)
	}
	p.took[function] = seconds
}
