package closures

import (
	"fmt"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Bounds of the per-worker resources of a queue. They are kept as long as it lives,
// and those that a lease uses travel with it.
const (
	maxResources     = 10_000
	maxResourceBytes = 256 << 10
)

// resources are what closures may use, by ID from 1.
type resources struct {
	list  []spec.Resource
	bytes int
}

func (r *resources) get(id uint64) (spec.Resource, bool) {
	if id == 0 || id > uint64(len(r.list)) {
		return spec.Resource{}, false
	}
	return r.list[id-1], true
}

func (r *resources) sizeOf(id uint64) int {
	found, _ := r.get(id)
	return resourceBytes(found)
}

func resourceBytes(r spec.Resource) int { return len(r.Function) + len(r.Args) + len(r.Kwargs) }

func (r *resources) add(res spec.Resource) spec.Resource {
	res.ID = uint64(len(r.list)) + 1
	r.list = append(r.list, res)
	r.bytes += resourceBytes(res)
	return res
}

// CreateResource takes in how a per-worker resource is built. Nothing is built before
// a closure uses it (SEED-45, CC-38).
func (q *Queue) CreateResource(r spec.ResourceRequest) (spec.ResourceAnswer, error) {
	c := q.clients.asking(r.Client)
	call, err := c.resources.find(r.Number)
	if err != nil {
		return spec.ResourceAnswer{}, fmt.Errorf("create-resource of client %s: %w", r.Client, err)
	}
	if call != nil {
		return call.Answer()
	}
	if err := q.checkResource(r); err != nil {
		return spec.ResourceAnswer{}, err
	}
	call = &Call[spec.ResourceAnswer]{}
	call.give(spec.ResourceAnswer{ID: q.resources.add(r.Resource).ID})
	q.clients.bytes -= c.resources.add(r.Number, call)
	c.resources.weigh(r.Number, answerBytes)
	q.clients.answered(c, answerBytes)
	return call.Answer()
}

func (q *Queue) checkResource(r spec.ResourceRequest) error {
	if q.ended != "" {
		return q.endedError("create resources")
	}
	if err := r.Validate(); err != nil {
		return err
	}
	if q.unregistered(r.Resource.Function) {
		return &spec.InvalidRequestError{Problems: []spec.Problem{spec.UnknownFunction("resource.f", r.Resource.Function, q.seen.sorted())}}
	}
	if len(q.resources.list) >= maxResources || q.resources.bytes+resourceBytes(r.Resource) > maxResourceBytes {
		return fmt.Errorf("the queue has %d resources of %d bytes; it takes up to %d, of %d bytes together: create them once and use them in many closures",
			len(q.resources.list), q.resources.bytes, maxResources, maxResourceBytes)
	}
	return nil
}
