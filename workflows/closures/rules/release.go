package rules

// ReleaseOn sends a host the dropped resources, by the activity
// [closure.ActivityReleaseResources]. [Queue.ReleaseEnded] must be called with the number
// Release when it has ended.
type ReleaseOn struct {
	Release     int
	Host, Queue string
	// Released are ranges of IDs.
	Released [][2]uint64
}

func (ReleaseOn) action() {}

// releaseAtOnce is the number of released IDs from which a host that has leases gets them by an
// activity.
const releaseAtOnce = 64

// noteDropped notes which hosts must receive the dropped resources: the hosts that may have
// built them.
func (q *dispatcher) noteDropped() {
	for _, id := range q.dropped {
		for _, h := range q.hosts {
			if h.given.has(id) {
				h.gone.cover(span{id, id})
			}
		}
	}
	q.dropped = nil
}

// releaseOn returns the action that sends a host its dropped resources, if it is due. A lease
// carries them as well, at no cost. So it is due only for a host without leases, or for many
// resources.
func (q *dispatcher) releaseOn(h *host) (a ReleaseOn, due bool) {
	few := h.gone.Last-h.gone.First < releaseAtOnce
	if h.gone.empty() || h.doubted || h.unreachable || !h.releasing.empty() || few && len(h.leases) > 0 {
		return a, false
	}
	a = ReleaseOn{Host: h.name, Queue: h.queue, Released: q.resources.goneIn(h.gone)}
	h.releasing, h.gone = h.gone, span{}
	if len(a.Released) == 0 {
		h.releasing = span{}
		return a, false
	}
	q.lastRelease++
	a.Release, h.release = q.lastRelease, q.lastRelease
	return a, true
}

// releaseWith returns the dropped resources for a lease.
func (q *dispatcher) releaseWith(h *host, l *lease) (released [][2]uint64) {
	if h.gone.empty() {
		return nil
	}
	released = q.resources.goneIn(h.gone)
	l.released, h.gone = h.gone, span{}
	return released
}

// ReleaseEnded records whether a [ReleaseOn] has reached its host. If not, it is repeated with
// the host's next lease, or after its next message.
func (q *dispatcher) ReleaseEnded(number int, ok bool) {
	for _, h := range q.hosts {
		if h.release != number || h.releasing.empty() {
			continue
		}
		if !ok {
			h.gone.cover(h.releasing)
			h.unreachable = true
		}
		h.releasing = span{}
	}
}

// unheard returns the IDs whose release the host has not acknowledged.
func (h *host) unheard() span {
	s := h.gone
	s.cover(h.releasing)
	for _, l := range h.leases {
		s.cover(l.released)
	}
	return s
}

// span is a range of IDs. The zero span is empty.
type span struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

func (s span) empty() bool { return s.Last == 0 }

func (s span) has(id uint64) bool { return s.First <= id && id <= s.Last }

// cover extends the span to include o.
func (s *span) cover(o span) {
	switch {
	case o.empty():
	case s.empty():
		*s = o
	default:
		s.First, s.Last = min(s.First, o.First), max(s.Last, o.Last)
	}
}
