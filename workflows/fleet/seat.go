package fleet

import (
	"cmp"
	"slices"
)

// seat is a host during a search for a run's places.
type seat struct {
	host   *host
	number int // in name order
	room       // the remaining capacity
	from   room
	// fits is how many tasks would fit on the host in total.
	fits int
	lax  bool // see class
	// prefer is the host's position among the run's preferred hosts.
	prefer int
	// tasks is the number of seated tasks, counts splits it by group, and claims lists the GPUs
	// that pools have taken.
	tasks  int
	counts []int
	claims []claim
}

// claim records the GPUs that a pool uses on a host.
type claim struct {
	pool, gpus, tasks int
	all               bool     // the number of tasks is not limited, because the host has no GPUs
	listed            []string // GPUs requested by name
}

// clear removes all tasks from a seat.
func (s *seat) clear() {
	s.room, s.tasks, s.counts, s.claims = s.from, 0, nil, nil
}

// add seats up to n tasks of a group, and returns how many were seated.
func (s *seat) add(groups []group, i, n int) int {
	n = min(n, s.slots)
	switch g := &groups[i]; {
	case n <= 0:
	case g.PerTask > 0:
		n = min(n, s.gpus/g.PerTask)
		s.gpus -= n * g.PerTask
	case g.GPUs != 0:
		n = s.claim(g, n)
	}
	if n <= 0 {
		return 0
	}
	s.slots -= n
	s.tasks += n
	if s.counts == nil {
		s.counts = make([]int, len(groups))
	}
	s.counts[i] += n
	return n
}

// claim takes the GPUs for up to n tasks, and returns the number of tasks that get GPUs.
func (s *seat) claim(g *group, n int) int {
	at := slices.IndexFunc(s.claims, func(c claim) bool { return c.pool == g.Pool })
	if at < 0 {
		c := claim{pool: g.Pool, gpus: g.GPUs, listed: g.listed}
		switch has := len(s.host.GPUs); {
		case has == 0 && s.lax:
			c.gpus, c.all, c.listed = 0, true, nil
		case g.GPUs == AllGPUs, !s.host.knows(g.listed):
			c.gpus, c.listed = max(has, 1), nil
		}
		if c.gpus > s.gpus {
			return 0
		}
		s.gpus -= c.gpus
		at, s.claims = len(s.claims), append(s.claims, c)
	}
	c := &s.claims[at]
	if !c.all {
		n = min(n, c.gpus-c.tasks)
	}
	c.tasks += n
	return n
}

// seatPinned seats the tasks that are bound to the host, and reports whether all of them fit.
func (s *seat) seatPinned(sh *shape) bool {
	for _, i := range sh.byNeed {
		if g := &sh.groups[i]; g.Host == s.host.Name && s.add(sh.groups, i, g.Tasks) < g.Tasks {
			return false
		}
	}
	return true
}

// fill seats as many of the remaining tasks as fit.
func (s *seat) fill(sh *shape, left []int) (n int) {
	for _, i := range sh.byNeed {
		if g := &sh.groups[i]; left[i] > 0 && (g.Host == "" || g.Host == s.host.Name) {
			added := s.add(sh.groups, i, left[i])
			left[i] -= added
			n += added
		}
	}
	return n
}

// fitting returns the number of remaining tasks that would fit.
func (s *seat) fitting(sh *shape, left []int) int {
	total := 0
	for i := range sh.groups {
		if g := &sh.groups[i]; g.Host == "" || g.Host == s.host.Name {
			total += left[i]
		}
	}
	if !sh.hasGPUs {
		return min(s.slots, total)
	}
	trial := *s
	trial.counts, trial.claims = nil, slices.Clone(s.claims)
	return trial.fill(sh, slices.Clone(left))
}

// bestFit orders seats by their remaining capacity: preferred ones first, then the seats that use
// their GPUs and slots best.
func bestFit(a, b *seat) int {
	return cmp.Or(cmp.Compare(a.prefer, b.prefer), cmp.Compare(a.gpus, b.gpus), cmp.Compare(a.slots, b.slots), cmp.Compare(a.number, b.number))
}

// roomiest orders seats by how many tasks fit, the largest number first.
func roomiest(a, b *seat) int {
	return cmp.Or(cmp.Compare(a.prefer, b.prefer), -cmp.Compare(a.fits, b.fits), bestFit(a, b))
}
