package rules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Bounds of the per-worker resources of a queue. A lease carries the resources that it uses.
const (
	maxResources     = 10_000
	maxResourceBytes = 256 << 10
)

// resources are the per-worker resources that closures may use, by ID. IDs count from 1, and
// the IDs up to last that are not in the list have been released.
type resources struct {
	list  []*resource
	last  uint64
	bytes int
	// owners counts the resources of each owner, whose names take room once.
	owners map[owner]int
}

// owner is the client that has created a resource. Only the owner can release it.
type owner struct {
	client string
	// The client is process number process of a task. task is empty for other clients.
	task    string
	process int
}

func (o owner) size() int { return len(o.client) + len(o.task) }

// resource is a resource that a client may still use, or that a closure uses that has not
// ended.
type resource struct {
	closure.Resource
	owner owner
	// uses counts the closures that use it and have not ended, including the closures of
	// requests that wait.
	uses int
	// released reports whether the owner has released it. It is dropped after its last use.
	released bool
}

func (r *resources) get(id uint64) *resource {
	if at, found := r.find(id); found {
		return r.list[at]
	}
	return nil
}

func (r *resources) find(id uint64) (at int, found bool) {
	return slices.BinarySearchFunc(r.list, id, func(res *resource, id uint64) int { return cmp.Compare(res.ID, id) })
}

func (r *resources) sizeOf(id uint64) int {
	if found := r.get(id); found != nil {
		return resourceBytes(found.Resource)
	}
	return 0
}

func resourceBytes(r closure.Resource) int { return len(r.Function) + len(r.Args) + len(r.Kwargs) }

// room returns the number of bytes that one more resource of an owner would take.
func (r *resources) room(res closure.Resource, o owner) int {
	size := resourceBytes(res)
	if r.owners[o] == 0 {
		size += o.size()
	}
	return size
}

// add adds a resource, whose ID must be higher than all before.
func (r *resources) add(res *resource) {
	r.bytes += r.room(res.Resource, res.owner)
	if r.owners == nil {
		r.owners = map[owner]int{}
	}
	r.owners[res.owner]++
	r.list = append(r.list, res)
	r.last = res.ID
}

// dropUnused removes a resource if it was released and nothing uses it. It reports whether it
// did.
func (r *resources) dropUnused(id uint64) bool {
	at, found := r.find(id)
	if !found || !r.list[at].released || r.list[at].uses > 0 {
		return false
	}
	res := r.list[at]
	r.list = slices.Delete(r.list, at, at+1)
	if r.owners[res.owner]--; r.owners[res.owner] == 0 {
		delete(r.owners, res.owner)
	}
	r.bytes -= r.room(res.Resource, res.owner)
	return true
}

// span returns the span of all IDs so far.
func (r *resources) span() span {
	if r.last == 0 {
		return span{}
	}
	return span{1, r.last}
}

// goneIn returns the ranges of IDs in a span whose resources were dropped.
func (r *resources) goneIn(s span) (gone [][2]uint64) {
	next := s.First
	at, _ := r.find(s.First)
	for ; at < len(r.list) && r.list[at].ID <= s.Last; at++ {
		if id := r.list[at].ID; id > next {
			gone = append(gone, [2]uint64{next, id - 1})
		}
		next = r.list[at].ID + 1
	}
	if next != 0 && next <= s.Last {
		gone = append(gone, [2]uint64{next, s.Last})
	}
	return gone
}

// CreateResource adds the definition of a per-worker resource. Nothing is built before a
// closure uses it.
func (q *Queue) CreateResource(r closure.ResourceRequest) (closure.ResourceAnswer, error) {
	c := q.clients.asking(r.Client)
	call, err := c.resources.find(r.Number)
	if err != nil {
		return closure.ResourceAnswer{}, fmt.Errorf("create-resource of client %s: %w", r.Client, err)
	}
	if call != nil {
		return call.Answer()
	}
	if err := q.checkResource(r); err != nil {
		return closure.ResourceAnswer{}, err
	}
	res := &resource{Resource: r.Resource, owner: owner{r.Client, r.Task, r.Process}}
	res.ID = q.resources.last + 1
	q.resources.add(res)
	call = &Call[closure.ResourceAnswer]{}
	call.give(closure.ResourceAnswer{ID: res.ID})
	q.clients.bytes -= c.resources.add(r.Number, call)
	c.resources.weigh(r.Number, answerBytes)
	q.clients.answered(c, answerBytes)
	return call.Answer()
}

func (q *Queue) checkResource(r closure.ResourceRequest) error {
	if q.ended != "" {
		return q.endedError("create resources")
	}
	if err := r.Validate(); err != nil {
		return err
	}
	if q.unregistered(r.Resource.Function) {
		return &spec.InvalidRequestError{Problems: []spec.Problem{closure.UnknownFunction("resource.function", r.Resource.Function, q.seen.sorted())}}
	}
	if len(q.resources.list) >= maxResources || q.resources.bytes+q.resources.room(r.Resource, owner{r.Client, r.Task, r.Process}) > maxResourceBytes {
		return fmt.Errorf("the queue has %d resources (%d bytes); the limit is %d (%d bytes). Reuse resources in many closures, and release unused ones",
			len(q.resources.list), q.resources.bytes, maxResources, maxResourceBytes)
	}
	return nil
}

// CheckRelease returns the reason why a request is refused, or nil.
func (q *Queue) CheckRelease(r closure.ReleaseRequest) error {
	if q.ended != "" {
		return q.endedError("release resources")
	}
	return r.Validate()
}

// ReleaseResources releases resources that a client has created. Closures with them that are in
// the queue are still called, and later ones are refused, also from other clients. After the
// last one has ended, the hosts that have built the resource drop it.
//
// A coordinator that was killed releases nothing. Its host does that once the next process of
// its task coordinates, or once there will be none.
func (q *Queue) ReleaseResources(r closure.ReleaseRequest) closure.ReleaseAnswer {
	if r.Task != "" {
		return q.releaseOf(r.Task, r.Process)
	}
	var answer closure.ReleaseAnswer
	for _, id := range r.Resources {
		if res := q.resources.get(id); res != nil && res.owner.client == r.Client {
			answer.Released += q.releaseOne(res)
		}
	}
	return answer
}

// releaseOf releases the resources of the processes of a task with numbers below before.
func (q *Queue) releaseOf(task string, before int) (answer closure.ReleaseAnswer) {
	for _, res := range slices.Clone(q.resources.list) {
		if res.owner.task == task && res.owner.process < before {
			answer.Released += q.releaseOne(res)
		}
	}
	return answer
}

func (q *Queue) releaseOne(res *resource) int {
	if res.released {
		return 0
	}
	res.released = true
	q.drop(res.ID)
	return 1
}

// use counts one more closure for each resource.
func (q *backlog) use(ids []uint64) {
	for _, id := range ids {
		if res := q.resources.get(id); res != nil {
			res.uses++
		}
	}
}

// useNoMore counts one less.
func (q *backlog) useNoMore(ids []uint64) {
	for _, id := range ids {
		if res := q.resources.get(id); res != nil {
			res.uses--
			q.drop(id)
		}
	}
}

// drop drops a resource if it was released and nothing uses it.
func (q *backlog) drop(id uint64) {
	if q.resources.dropUnused(id) {
		q.dropped = append(q.dropped, id)
	}
}
