package closurequeue

import (
	"context"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

const (
	// gatherReleases is the time that a release waits for further ones.
	gatherReleases = 50 * time.Millisecond
	// maxCreating bounds the range of numbers in flight: the queue remembers only the latest
	// numbers, and a late request must be among them.
	maxCreating = 8
	// closePatience bounds the time for which Close tries to release the remaining resources.
	closePatience = 2 * time.Second
)

// resources are per-worker resources that were created here. The lock of their [Queue] must be
// held.
type resources struct {
	// creating has the numbers of the requests in flight, in order, and number is the last
	// number.
	creating []uint64
	number   uint64
	// kept are the resources that are still needed.
	kept map[uint64]bool
	// released are the resources whose release has not been sent to the queue yet, in order.
	released []released
}

type released struct {
	id uint64
	// after is the number of closures that had been scheduled by then; some of them may use the
	// resource.
	after uint64
}

// CreateResource creates a per-worker resource, and returns its ID. The resource exists until
// [Queue.Release] or Close.
func (q *Queue) CreateResource(ctx context.Context, r closure.Resource) (uint64, error) {
	r, err := checkedResource(r)
	if err != nil {
		return 0, err
	}
	request := closure.ResourceRequest{Client: q.name, Resource: r}
	err = q.await(ctx, func() bool {
		if c := q.resources.creating; len(c) > 0 && q.resources.number >= c[0]+maxCreating-1 {
			return false
		}
		q.resources.number++
		request.Number = q.resources.number
		q.resources.creating = append(q.resources.creating, request.Number)
		return true
	})
	if err != nil {
		return 0, err
	}
	a, err := q.client.CreateResource(ctx, request)
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.wake()
	q.resources.creating = slices.DeleteFunc(q.resources.creating, func(n uint64) bool { return n == request.Number })
	if err != nil {
		return 0, within(err, "resource.")
	}
	if q.resources.kept == nil {
		q.resources.kept = map[uint64]bool{}
	}
	q.resources.kept[a.ID] = true
	return a.ID, nil
}

// Release releases resources that were created here. It does not wait. Closures that use them
// and were scheduled before are still called, and then the tasks drop what they have built.
func (q *Queue) Release(ids ...uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.resources.release(ids, q.scheduled)
	q.wake()
}

// release marks resources as released, after so many closures were scheduled.
func (r *resources) release(ids []uint64, after uint64) {
	for _, id := range ids {
		if r.kept[id] {
			delete(r.kept, id)
			r.released = append(r.released, released{id, after})
		}
	}
}

// releasable reports whether the next release can be sent: the queue has answered for all
// closures that may use the resource.
func (r *resources) releasable(passed uint64) bool {
	return len(r.released) > 0 && r.released[0].after <= passed
}

// takeReleased returns the resources whose release can be sent, as many as a request takes.
func (r *resources) takeReleased(passed uint64) (ids []uint64) {
	for r.releasable(passed) && len(ids) < closure.MaxBatch {
		ids = append(ids, r.released[0].id)
		r.released = r.released[1:]
	}
	return ids
}

// releaseAll sends releases to the queue, in batches, until the client ends.
func (q *Queue) releaseAll() {
	for {
		if q.await(q.ctx, func() bool { return q.resources.releasable(q.passed) }) != nil {
			return
		}
		gather := time.NewTimer(gatherReleases)
		select {
		case <-gather.C:
		case <-q.ctx.Done():
			gather.Stop()
			return
		}
		q.mu.Lock()
		ids := q.resources.takeReleased(q.passed)
		q.mu.Unlock()
		if len(ids) == 0 {
			continue
		}
		if _, err := q.client.ReleaseResources(q.ctx, closure.ReleaseRequest{Client: q.name, Resources: ids}); err != nil {
			if q.ctx.Err() != nil { // Close sends it
				q.mu.Lock()
				for _, id := range ids {
					q.resources.released = append(q.resources.released, released{id: id})
				}
				q.mu.Unlock()
				return
			}
			// The run has ended, and the queue with it.
			q.mu.Lock()
			q.resources.kept, q.resources.released = nil, nil
			q.mu.Unlock()
		}
	}
}

// releaseLast releases the remaining resources, after the client has ended. Closures that are
// not in the queue by now never will be.
func (q *Queue) releaseLast() {
	q.mu.Lock()
	ids := make([]uint64, 0, len(q.resources.kept)+len(q.resources.released))
	for id := range q.resources.kept {
		ids = append(ids, id)
	}
	for _, r := range q.resources.released {
		ids = append(ids, r.id)
	}
	q.resources.kept, q.resources.released = nil, nil
	q.mu.Unlock()
	slices.Sort(ids)
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	for some := range slices.Chunk(ids, closure.MaxBatch) {
		if _, err := q.client.ReleaseResources(ctx, closure.ReleaseRequest{Client: q.name, Resources: some}); err != nil {
			return // the queue cannot be reached
		}
	}
}
