package closures

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// ranges are ranges of IDs, first and last, sorted and as few as possible.
type ranges [][2]uint64

func (r ranges) contains(id uint64) bool {
	_, found := slices.BinarySearchFunc(r, id, func(one [2]uint64, id uint64) int {
		switch {
		case one[1] < id:
			return -1
		case one[0] > id:
			return 1
		}
		return 0
	})
	return found
}

// with returns the union of r and others.
func (r ranges) with(others ranges) ranges { return closure.JoinRanges(slices.Concat(r, others)) }

// Release makes all processes drop their values of resources that are no longer needed, given
// by ranges of IDs.
func (b *Broker) Release(released [][2]uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release(released)
	b.tellReleased()
}

// release records released resources. b.mu must be held. IDs of resources are never reused,
// so a released resource stays released.
func (b *serving) release(released ranges) {
	if len(released) == 0 || b.isClosed() {
		return
	}
	b.released = b.released.with(released)
	for _, p := range b.processes {
		p.release(released)
	}
}

// tellReleased answers the waiting processes that have not received a release.
func (b *serving) tellReleased() {
	for _, p := range slices.Clone(b.waiting) {
		if p.owed {
			b.answerOwed(p)
		}
	}
}

// releaseAgain tells a process to drop resources that it may have built again, for a closure
// that the queue had ended before the resource was released.
func (b *store) releaseAgain(p *process, resources []uint64) {
	for _, id := range resources {
		if b.released.contains(id) {
			p.release(ranges{{id, id}})
		}
	}
}

// release makes the next answer to a process, which has its own number, report a release.
// Answers repeat it until the process has acknowledged one.
func (p *process) release(released ranges) {
	p.released = p.released.with(released)
	p.releasedBy = 0
	p.owed = true
	for id := range p.built {
		if released.contains(id) {
			delete(p.built, id)
		}
	}
}

// nextNews assigns a number to an answer that reports all releases.
func (p *process) nextNews() {
	p.news++
	p.releasedBy = p.news
}

// hasRead notes which news a process has received.
func (p *process) hasRead(news uint64) {
	switch {
	case len(p.released) == 0:
	case p.releasedBy > 0 && news >= p.releasedBy:
		p.released = nil
	case p.releasedBy == 0 && p.unread == nil:
		p.owed = true // what it has read came before
	}
}
