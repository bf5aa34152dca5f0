package rules

// ReleaseOn tells a host which resources nobody needs any more, as an activity
// [closure.ActivityReleaseResources]. Its end is told by [Queue.ReleaseEnded], with the
// number Release.
type ReleaseOn struct {
	Release     int
	Host, Queue string
	// Released are ranges of IDs.
	Released [][2]uint64
}

func (ReleaseOn) action() {}

// releaseAtOnce is how many IDs a host may not know of while it has leases.
const releaseAtOnce = 64

// noteDropped notes which hosts have to hear of the resources that were dropped: those that
// may have built them.
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

// releaseOn tells a host what is gone, if it is due. The next lease tells it, too, and
// that costs nothing: so only a host is told apart that has no leases, or when much is
// gone.
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

// releaseWith tells a host what is gone with a lease.
func (q *dispatcher) releaseWith(h *host, l *lease) (released [][2]uint64) {
	if h.gone.empty() {
		return nil
	}
	released = q.resources.goneIn(h.gone)
	l.released, h.gone = h.gone, span{}
	return released
}

// ReleaseEnded says whether a host has been told what a [ReleaseOn] had for it. If not
// it is told again, with its next lease or when it is heard of.
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

// span is a range of IDs. Zero is none.
type span struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

func (s span) empty() bool { return s.Last == 0 }

func (s span) has(id uint64) bool { return s.First <= id && id <= s.Last }

// cover has the span include another one, and what is between them.
func (s *span) cover(o span) {
	switch {
	case o.empty():
	case s.empty():
		*s = o
	default:
		s.First, s.Last = min(s.First, o.First), max(s.Last, o.Last)
	}
}
