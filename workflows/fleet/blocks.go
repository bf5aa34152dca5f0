package fleet

import (
	"cmp"
	"slices"
)

// block is a set of tasks that share a host if the number of tasks per host is set.
type block struct {
	ranks  []Ranks
	counts []int // by group
	tasks  int
	need   int
	host   string
}

// blocks finds a host for each block of tasks.
func (sh *shape) blocks(seats []*seat) []place {
	blocks, ok := sh.cut()
	if !ok || len(blocks) < sh.min || len(blocks) > sh.max {
		return nil
	}
	order := make([]int, len(blocks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return -cmp.Or(cmp.Compare(blocks[a].need, blocks[b].need), cmp.Compare(blocks[a].tasks, blocks[b].tasks))
	})
	seats = slices.DeleteFunc(slices.Clone(seats), func(s *seat) bool { return s.fits == 0 })
	slices.SortFunc(seats, func(a, b *seat) int {
		if sh.spread {
			return roomiest(a, b)
		}
		return bestFit(a, b)
	})
	places := make([]place, 0, len(blocks))
	for _, i := range order {
		b := &blocks[i]
		at := slices.IndexFunc(seats, func(s *seat) bool { return b.fits(sh, s) })
		if at < 0 {
			return nil
		}
		places = append(places, seats[at].place(b.ranks))
		seats = slices.Delete(seats, at, at+1)
	}
	return ordered(places)
}

// cut divides the tasks into blocks, either by rank or by dealing them out one by one. It reports
// whether each block's tasks may share a host.
func (sh *shape) cut() ([]block, bool) {
	n := (sh.tasks + sh.perHost - 1) / sh.perHost
	blocks := make([]block, n)
	for i := range blocks {
		blocks[i].counts = make([]int, len(sh.groups))
	}
	for i, g := range sh.groups {
		for rank := g.first; rank < g.first+g.Tasks; rank++ {
			b := &blocks[rank/sh.perHost]
			if sh.spread {
				b = &blocks[rank%n]
			}
			if g.Host != "" && b.host != "" && b.host != g.Host {
				return nil, false
			}
			b.ranks = withRanks(b.ranks, Ranks{rank, rank + 1})
			b.counts[i]++
			b.tasks++
			b.need = max(b.need, need(g))
			b.host = cmp.Or(b.host, g.Host)
		}
	}
	return blocks, true
}

// fits seats the block if all of it fits.
func (b *block) fits(sh *shape, s *seat) bool {
	if s.slots < b.tasks || b.host != "" && b.host != s.host.Name {
		return false
	}
	for _, i := range sh.byNeed {
		if n := b.counts[i]; n > 0 && s.add(sh.groups, i, n) < n {
			s.clear()
			return false
		}
	}
	return true
}
