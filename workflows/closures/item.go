package closures

import (
	"cmp"

	"github.com/clusterrun/clusterrun/workflows/closure"
)

// item is a closure that has not ended.
type item struct {
	closure.Closure
	size int
	// lane is where it is queued; nil while a host holds it.
	lane *lane
	host *host
	// lease is the open lease that names it. 0: none does at the moment.
	lease int
	// told reports whether its host was told to cancel it, so that it is not called again.
	told bool
	// returns counts the leases that came back without its outcome, up to slowReturns.
	returns int
	// losses counts the processes that ended while they called it, and lostOn names
	// the latest of their tasks.
	losses int
	lostOn []string
	// failures counts the calls that failed by themselves and were tried again.
	failures int
}

func newItem(c closure.Closure, id uint64) *item {
	c.ID, c.Attempt, c.Left = id, 0, 0
	if c.Options != nil && c.Options.Retry { // it is of no concern to those who call it
		o := *c.Options
		o.Retry = false
		c.Options = &o
	}
	return &item{Closure: c, size: c.Size()}
}

// detached ones are nobody's business but their own: join and done do not wait for
// them, and their errors are not the queue's.
func (it *item) detached() bool { return it.Options != nil && it.Options.Detached }

func (it *item) task() string {
	if it.Options == nil {
		return ""
	}
	return it.Options.Task
}

func (it *item) key() string {
	if it.Options == nil {
		return ""
	}
	return it.Options.Key
}

func (it *item) priority() int {
	if it.Options == nil {
		return 0
	}
	return it.Options.Priority
}

// leased returns the closure as a lease has it.
func (it *item) leased() closure.Closure {
	c := it.Closure
	if c.Options != nil {
		c.Left = max(0, c.Options.Retries-it.failures)
	}
	return c
}

// order: higher priorities first, then in the order they were scheduled.
func order(a, b *item) int {
	return cmp.Or(cmp.Compare(b.priority(), a.priority()), cmp.Compare(a.ID, b.ID))
}

func byID(a, b *item) int { return cmp.Compare(a.ID, b.ID) }

// items is a heap by order.
type items []*item

func (s items) Len() int           { return len(s) }
func (s items) Less(i, j int) bool { return order(s[i], s[j]) < 0 }
func (s items) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *items) Push(x any)        { *s = append(*s, x.(*item)) }
func (s *items) Pop() any {
	last := len(*s) - 1
	it := (*s)[last]
	(*s)[last], *s = nil, (*s)[:last]
	return it
}
