package rules

import (
	"container/heap"
	"slices"
)

// lanes hold what is queued, apart by what decides which hosts may have it.
type lanes struct {
	named map[laneName]*lane // for look-ups only: ranging over a map has no order
	list  []*lane
}

type laneName struct{ task, function string }

// lane are queued closures of one function that one task may call, or any.
type lane struct {
	laneName
	// fresh are those that were never given to a host, from first on, by ID. back are the
	// others, a heap.
	fresh []*item
	first int
	back  items
	// live counts those that are still queued. The others of fresh and back have
	// ended meanwhile and are passed over.
	live int
}

func newLanes() lanes { return lanes{named: map[laneName]*lane{}} }

// of returns the lane of an item. Its name replaces the item's, so that a hundred
// thousand closures share one text.
func (ls *lanes) of(it *item) *lane {
	name := laneName{it.task(), it.Function}
	l := ls.named[name]
	if l == nil {
		l = &lane{laneName: name}
		ls.named[name] = l
		ls.list = append(ls.list, l)
	}
	it.Function = l.function
	return l
}

// sweep forgets lanes in which nothing waits.
func (ls *lanes) sweep() {
	ls.list = slices.DeleteFunc(ls.list, func(l *lane) bool {
		if l.live == 0 {
			delete(ls.named, l.laneName)
		}
		return l.live == 0
	})
}

// each are those that are queued, in no order that means anything.
func (ls *lanes) each(do func(*item)) {
	for _, l := range ls.list {
		for _, it := range slices.Concat(l.fresh[l.first:], l.back) {
			if it.lane == l {
				do(it)
			}
		}
	}
}

// append queues an item whose ID is higher than all before.
func (l *lane) append(it *item) {
	it.lane = l
	l.live++
	l.fresh = append(l.fresh, it)
}

// putBack queues an item at its place, which nearly always is the first.
func (l *lane) putBack(it *item) {
	it.lane = l
	l.live++
	heap.Push(&l.back, it)
}

// remove takes an item out of the middle.
func (l *lane) remove(it *item) {
	it.lane = nil
	l.live--
	// What is passed over must not outgrow what is queued.
	if len(l.fresh)-l.first+len(l.back) > 2*l.live+64 {
		gone := func(it *item) bool { return it.lane != l }
		l.fresh, l.first = slices.DeleteFunc(l.fresh[l.first:], gone), 0
		l.back = slices.DeleteFunc(l.back, gone)
		heap.Init(&l.back)
	}
}

// head returns the next of the lane, nil if there is none.
func (l *lane) head() *item {
	for l.first < len(l.fresh) && l.fresh[l.first].lane != l {
		l.dropFirst()
	}
	for len(l.back) > 0 && l.back[0].lane != l {
		heap.Pop(&l.back)
	}
	switch {
	case l.first == len(l.fresh) && len(l.back) == 0:
		return nil
	case l.first == len(l.fresh):
		return l.back[0]
	case len(l.back) == 0 || l.fresh[l.first].ID < l.back[0].ID:
		return l.fresh[l.first]
	}
	return l.back[0]
}

// pop takes the head out.
func (l *lane) pop() {
	it := l.head()
	if l.first < len(l.fresh) && l.fresh[l.first] == it {
		l.dropFirst()
	} else {
		heap.Pop(&l.back)
	}
	it.lane = nil
	l.live--
}

func (l *lane) dropFirst() {
	l.fresh[l.first] = nil
	l.first++
	if l.first == len(l.fresh) {
		l.fresh, l.first = l.fresh[:0], 0
	} else if l.first >= 1024 && l.first > len(l.fresh)/2 {
		n := copy(l.fresh, l.fresh[l.first:])
		clear(l.fresh[n:])
		l.fresh, l.first = l.fresh[:n], 0
	}
}
