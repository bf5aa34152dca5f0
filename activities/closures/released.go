package closures

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ranges are ranges of IDs, first and last, in order and as few as possible.
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

// with has others, too.
func (r ranges) with(others ranges) ranges { return spec.JoinRanges(slices.Concat(r, others)) }

// Release has all processes drop what they have built of resources that nobody needs
// any more, by ranges of their IDs.
func (b *Broker) Release(released [][2]uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release(released)
	b.tellReleased()
}

// release must be called with mu held. Resources have no IDs twice, so what was released once
// stays so.
func (b *Broker) release(released ranges) {
	if len(released) == 0 || b.isClosed() {
		return
	}
	b.released = b.released.with(released)
	for _, p := range b.processes {
		p.release(released)
	}
}

// tellReleased answers those who wait and have not been told with closures.
func (b *Broker) tellReleased() {
	for _, p := range slices.Clone(b.waiting) {
		if p.owed {
			b.answerOwed(p)
		}
	}
}

// releaseAgain has a process drop what it may have built anew, for a closure that the
// queue had ended when the resource went.
func (b *Broker) releaseAgain(p *process, resources []uint64) {
	for _, id := range resources {
		if b.released.contains(id) {
			p.release(ranges{{id, id}})
		}
	}
}

// release has a process be told, with an answer that has a number of its own. What it
// has been told of before it is told again until it has acknowledged that.
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

// nextNews numbers an answer, which tells all that was released.
func (p *process) nextNews() {
	p.news++
	p.releasedBy = p.news
}

// hasRead notes which news a process has.
func (p *process) hasRead(news uint64) {
	switch {
	case len(p.released) == 0:
	case p.releasedBy > 0 && news >= p.releasedBy:
		p.released = nil
	case p.releasedBy == 0 && p.unread == nil:
		p.owed = true // what it has read came before
	}
}
