package rules

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// maxReleased limits the released resources that are reported to hosts. If a host misses some of
// them, its processes keep what they have built until they exit.
const maxReleased = 100

// define keeps the definitions of resources that a request's closures use.
func (q *Queue) define(resources []closure.Resource) {
	for _, r := range resources {
		if !slices.ContainsFunc(q.Resources, func(known closure.Resource) bool { return known.ID == r.ID }) {
			q.Resources = append(q.Resources, r)
		}
	}
}

// release drops resources after the last closure that uses them has completed.
func (q *Queue) release(ids []uint64) {
	q.Leaving = append(q.Leaving, ids...)
	q.sweep()
}

// sweep drops the released resources that no closure uses.
func (q *Queue) sweep() {
	if len(q.Leaving) == 0 {
		return
	}
	used := map[uint64]bool{}
	use := func(items []*Item) {
		for _, it := range items {
			for _, id := range it.Resources {
				used[id] = true
			}
		}
	}
	use(q.Waiting)
	for _, b := range q.Batches {
		use(b.Items)
	}
	for _, c := range q.calls {
		for i := range c.Closures {
			use([]*Item{{Closure: c.Closures[i]}})
		}
	}
	q.Leaving = slices.DeleteFunc(q.Leaving, func(id uint64) bool {
		if used[id] {
			return false
		}
		q.Resources = slices.DeleteFunc(q.Resources, func(r closure.Resource) bool { return r.ID == id })
		q.Released = append(q.Released, id)
		return true
	})
	q.Released = q.Released[max(0, len(q.Released)-maxReleased):]
}
