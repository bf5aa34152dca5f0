package closurequeue

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

func (q *Queue) create(t *testing.T) uint64 {
	t.Helper()
	id := must.Get(q.CreateResource(patience(t), closure.Resource{Function: "same", Args: []byte("[7]")}))(t)
	return id
}

func with1(c closure.Closure, resource uint64) closure.Closure {
	c.Args = []byte(`[{"` + closure.ResourceKey + `":` + text(int(resource)) + `}]`)
	c.Resources = []uint64{resource}
	return c
}

// SEED-45, CC-29: closures that were scheduled before the release have their resource, even if
// they reach the queue late, and then the tasks drop it. Closures scheduled afterwards are
// refused.
func TestResourcesAreReleased(t *testing.T) {
	f := newFixture(t)
	f.Limit(1)
	first, second := f.create(t), f.create(t)
	f.Away(true)
	remotes := []*Remote{f.schedule(with1(newClosure("same"), first)), f.schedule(with1(newClosure("same"), first)), f.schedule(with1(newClosure("same"), second))}
	f.Release(first, first, 99)
	f.Away(false)
	for _, r := range remotes {
		f.assertValue("7", r)
	}
	f.eventually("the queue drops it", func() bool { return f.Counts().Resource == 1 })
	f.eventually("and so do the tasks", func() bool { return len(f.Built()) == 1 })
	assert.Equal(t, []uint64{second}, f.Built())

	refused := f.schedule(with1(newClosure("same"), first))
	_, err := refused.Wait(patience(t))
	require.ErrorContains(t, err, "resources: resource 1 was released by the client that created it; create a new one")
	require.Error(t, f.Join(patience(t)), "and it is the error of who has scheduled it")
	f.assertValue("7", f.schedule(with1(newClosure("same"), second)))
}

// A client cannot release a resource that another client has created.
func TestResourcesAreReleasedByTheirCreator(t *testing.T) {
	f := newFixture(t)
	other := f.open()
	mine, its := f.create(t), other.create(t)
	f.Release(its)
	_, err := f.client.ReleaseResources(patience(t), closure.ReleaseRequest{Client: "somebody", Resources: []uint64{mine, its}})
	require.NoError(t, err)
	assert.Equal(t, 2, f.Counts().Resource)
	other.Release(its)
	f.eventually("it is gone", func() bool { return f.Counts().Resource == 1 })
}

// Lost answers, a server that is away and executions that end lose no release.
func TestReleasesAreSentAgain(t *testing.T) {
	f := newFixture(t)
	const n = 2 * closure.MaxBatch
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = f.create(t)
	}
	f.Lose(closure.UpdateReleaseResources, 2)
	f.Away(true)
	f.Release(ids[:n/4]...)
	f.Away(false)
	f.ContinueAsNew()
	f.Release(ids[n/4:]...)
	f.eventually("all are gone", func() bool { return f.Counts().Resource == 0 })
	assert.Less(t, f.Updates(closure.UpdateReleaseResources), n/10, "they go together")
}

// The end of a client releases its remaining resources. Closures that use them continue.
func TestCloseReleasesResources(t *testing.T) {
	f := newFixture(t)
	left, released := f.create(t), f.create(t)
	c := newClosure("wait")
	c.Resources = []uint64{left}
	r := f.schedule(c)
	_, err := r.ID(patience(t))
	require.NoError(t, err)
	f.Release(released)
	f.Queue.Close()
	assert.Equal(t, 1, f.Counts().Resource, "a closure has it")
	close(f.release)
	f.eventually("nothing is left", func() bool { return f.Counts().Resource == 0 })
}

// The end of the run ends all resources, without a wait for the queue.
func TestReleaseAfterTheRun(t *testing.T) {
	f := newFixture(t)
	id := f.create(t)
	f.End("it is")
	f.Release(id)
	f.Queue.Close()
}

// The largest possible number of clients may create resources at the same time: none of their
// requests is older than the queue remembers.
func TestManyCreateResources(t *testing.T) {
	f := newFixture(t)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for range 50 {
				id, err := f.CreateResource(patience(t), closure.Resource{Function: "same"})
				if assert.NoError(t, err) {
					f.Release(id)
				}
			}
		})
	}
	all.Wait()
	f.eventually("all are gone", func() bool { return f.Counts().Resource == 0 })
}
