package rules

import (
	"cmp"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// item is a closure that has not ended.
type item struct {
	closure.Closure
	size int
	// queue is the queue that it waits in, or nil while a host holds it.
	queue *functionQueue
	host  *host
	// lease is the open lease that names it, or 0 if none does.
	lease int
	// told reports whether its host has a request to cancel it. It is not called again then.
	told bool
	// returns counts the leases that came back without its outcome, up to slowReturns.
	returns int
	// losses counts the processes that ended while they called it, and lostOn names
	// the latest of their tasks.
	losses int
	lostOn []string
}

func newItem(c closure.Closure, id uint64) *item {
	c.ID, c.Attempt = id, 0
	return &item{Closure: c, size: c.Size()}
}

// detached reports whether join and done do not wait for it, and its error is not the queue's.
func (it *item) detached() bool { return it.Task != "" }

func byID(a, b *item) int { return cmp.Compare(a.ID, b.ID) }

// items is a heap by ID, which is the order of scheduling.
type items []*item

func (s items) Len() int           { return len(s) }
func (s items) Less(i, j int) bool { return s[i].ID < s[j].ID }
func (s items) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *items) Push(x any)        { *s = append(*s, x.(*item)) }
func (s *items) Pop() any {
	last := len(*s) - 1
	it := (*s)[last]
	(*s)[last], *s = nil, (*s)[:last]
	return it
}
