package closures

import "github.com/clusterrun/clusterrun/workflows/closures/closure"

// resources are the resources that closures of the broker refer to.
type resources struct {
	all  map[uint64]closure.Resource
	refs map[uint64]int
}

func newResources() resources {
	return resources{all: map[uint64]closure.Resource{}, refs: map[uint64]int{}}
}

// learn keeps the resources that a closure refers to.
func (r *resources) learn(list []closure.Resource) {
	for _, one := range list {
		if r.refs[one.ID] > 0 {
			r.all[one.ID] = one
		}
	}
}

func (r *resources) refer(ids []uint64) {
	for _, id := range ids {
		r.refs[id]++
	}
}

func (r *resources) release(ids []uint64) {
	for _, id := range ids {
		if r.refs[id]--; r.refs[id] <= 0 {
			delete(r.refs, id)
			delete(r.all, id)
		}
	}
}
