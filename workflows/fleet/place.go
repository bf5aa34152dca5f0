package fleet

import (
	"cmp"
	"slices"
)

// place is a run's share of a host.
type place struct {
	Place
	Tasks  int      `json:"tasks"`
	GPUs   int      `json:"gpus,omitempty"`
	listed []string // GPUs that are requested by name
}

// places returns places for all tasks, or nil. The order of the seats does not matter. The run's
// preferred hosts are filled first, unless that would take too many hosts.
func (sh *shape) places(seats []*seat) []place {
	found := sh.search(seats)
	if found == nil && slices.ContainsFunc(seats, func(s *seat) bool { return s.prefer < noBound }) {
		for _, s := range seats {
			s.prefer = noBound
		}
		found = sh.search(seats)
	}
	return found
}

func (sh *shape) search(seats []*seat) []place {
	left := sizes(sh)
	room := 0
	for _, s := range seats {
		s.clear()
		s.fits = s.fitting(sh, left)
		room += s.fits
	}
	if room < sh.tasks {
		return nil
	}
	if sh.perHost > 0 {
		return sh.blocks(seats)
	}
	chosen, others, ok := sh.pinned(seats, left)
	switch {
	case !ok:
		return nil
	case sh.spread:
		slices.SortFunc(others, roomiest)
		return sh.dealt(append(chosen, others[:min(len(others), max(0, sh.max-len(chosen)))]...), left)
	}
	return sh.packed(chosen, others, left)
}

// sizes returns the number of tasks in each group.
func sizes(sh *shape) []int {
	list := make([]int, len(sh.groups))
	for i := range sh.groups {
		list[i] = sh.groups[i].Tasks
	}
	return list
}

// pinned seats the tasks that are bound to hosts. It also returns the seats that could accept some
// of the remaining tasks.
func (sh *shape) pinned(seats []*seat, left []int) (chosen, others []*seat, ok bool) {
	for i := range sh.groups {
		g := &sh.groups[i]
		if g.Host == "" {
			continue
		}
		at := slices.IndexFunc(seats, func(s *seat) bool { return s.host.Name == g.Host })
		if at < 0 {
			return nil, nil, false
		}
		left[i] = 0
		if !slices.Contains(chosen, seats[at]) {
			if !seats[at].seatPinned(sh) {
				return nil, nil, false
			}
			chosen = append(chosen, seats[at])
		}
	}
	for _, s := range seats {
		if s.tasks == 0 && s.fits > 0 {
			others = append(others, s)
		}
	}
	return chosen, others, true
}

// packed fills one host after another, to use few hosts.
func (sh *shape) packed(chosen, others []*seat, left []int) []place {
	wanted, rest := slices.Clone(left), sum(left)
	if len(chosen) == 0 && sh.min == sh.max {
		if even := sh.even(others, rest); even != nil {
			return sh.dealt(even, left)
		}
	}
	for _, s := range chosen {
		rest -= s.fill(sh, left)
	}
	slices.SortFunc(others, roomiest)
	for rest > 0 && len(others) > 0 && len(chosen) < sh.max {
		i := sh.next(others, left, rest)
		s := others[i]
		others = slices.Delete(others, i, i+1)
		if n := s.fill(sh, left); n > 0 {
			rest -= n
			chosen = append(chosen, s)
		}
	}
	if more := sh.min - len(chosen); rest == 0 && more > 0 {
		// The run needs more hosts. Deal the tasks out again, among all hosts.
		slices.SortFunc(others, bestFit)
		chosen = append(chosen, others[:min(more, len(others))]...)
		for _, s := range chosen {
			s.clear()
			s.seatPinned(sh)
		}
		return sh.dealt(chosen, wanted)
	}
	if rest > 0 {
		return nil
	}
	return sh.ranked(chosen)
}

// next returns the seat to fill next: of the seats that fit all remaining tasks, the one with the
// least capacity left over; if there is none, the seat that fits the most tasks.
func (sh *shape) next(others []*seat, left []int, rest int) int {
	best := -1
	for i, s := range others {
		if s.fits >= rest && (best < 0 || bestFit(s, others[best]) < 0) && s.fitting(sh, left) == rest {
			best = i
		}
	}
	if best < 0 || others[0].prefer < others[best].prefer {
		return 0
	}
	return best
}

// even returns hosts that can accept the same number of tasks each.
func (sh *shape) even(others []*seat, rest int) []*seat {
	each := (rest + sh.min - 1) / sh.min
	fit := slices.DeleteFunc(slices.Clone(others), func(s *seat) bool { return s.fits < each })
	if len(fit) < sh.min {
		return nil
	}
	slices.SortFunc(fit, bestFit)
	return fit[:sh.min]
}

// dealt deals the tasks out one by one, each to the host with the fewest tasks.
func (sh *shape) dealt(seats []*seat, left []int) []place {
	slices.SortStableFunc(seats, func(a, b *seat) int { return cmp.Compare(a.prefer, b.prefer) })
	for _, i := range sh.byNeed {
		open := slices.Clone(seats)
		for left[i] > 0 {
			if len(open) == 0 {
				return nil
			}
			level := slices.MinFunc(open, func(a, b *seat) int { return cmp.Compare(a.tasks, b.tasks) }).tasks
			open = slices.DeleteFunc(open, func(s *seat) bool {
				if left[i] == 0 || s.tasks > level {
					return false
				}
				n := s.add(sh.groups, i, 1)
				left[i] -= n
				return n == 0
			})
		}
	}
	return sh.ranked(slices.DeleteFunc(seats, func(s *seat) bool { return s.tasks == 0 }))
}

// ranked assigns the ranks to the seats, either in blocks or dealt out one by one over all hosts.
func (sh *shape) ranked(seats []*seat) []place {
	if len(seats) < sh.min || len(seats) > sh.max {
		return nil
	}
	slices.SortStableFunc(seats, func(a, b *seat) int { return cmp.Compare(a.prefer, b.prefer) })
	ranks := make([][]Ranks, len(seats))
	for i, g := range sh.groups {
		next := g.first
		give := func(at, n int) {
			if n > 0 {
				ranks[at] = withRanks(ranks[at], Ranks{next, next + n})
				next += n
			}
		}
		if !sh.spread {
			for at, s := range seats {
				give(at, s.counts[i])
			}
			continue
		}
		for round := 0; next < g.first+g.Tasks; round++ {
			for at, s := range seats {
				give(at, min(1, max(0, s.counts[i]-round)))
			}
		}
	}
	places := make([]place, len(seats))
	for at, s := range seats {
		places[at] = s.place(ranks[at])
	}
	return ordered(places)
}

// withRanks appends ranks, which must come after those in list.
func withRanks(list []Ranks, r Ranks) []Ranks {
	if n := len(list); n > 0 && list[n-1].End == r.First {
		list[n-1].End = r.End
		return list
	}
	return append(list, r)
}

// place returns the run's place on the seat's host.
func (s *seat) place(ranks []Ranks) place {
	p := place{
		Place: Place{Host: s.host.Name, Instance: s.host.Instance, Address: s.host.Address, Ranks: ranks},
		Tasks: s.tasks, GPUs: s.from.gpus - s.gpus,
	}
	if s.tasks > s.host.all().slots {
		p.Slots = s.host.Slots
	}
	for _, c := range s.claims {
		p.listed = append(p.listed, c.listed...)
	}
	return p
}

// ordered sorts places by lowest rank.
func ordered(places []place) []place {
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.Ranks[0].First, b.Ranks[0].First) })
	return places
}

func sum(list []int) (n int) {
	for _, i := range list {
		n += i
	}
	return n
}
