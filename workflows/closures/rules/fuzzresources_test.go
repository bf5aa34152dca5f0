package rules

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Per-worker resources for FuzzQueue. A restored queue repeats releases that hosts may have
// received, so the releases of the twin are not compared; each must send enough.

func (f *fuzzed) createResource() {
	client := f.client()
	f.numbers[client+" resources"]++
	r := closure.ResourceRequest{Client: client, Number: f.numbers[client+" resources"], Resource: closure.Resource{Function: "f"}}
	a, err := f.queue.CreateResource(r)
	b, twin := f.twin.CreateResource(r)
	if a != b || (err == nil) != (twin == nil) {
		f.t.Fatalf("%+v %v and %+v %v", a, err, b, twin)
	}
	if err != nil {
		return
	}
	if f.owners[a.ID] != "" || a.ID == 0 {
		f.t.Fatalf("resource %d is there twice", a.ID)
	}
	f.owners[a.ID] = client
}

// release releases a resource, perhaps of another client. As clients do, it waits until the
// queue has answered the requests that use it.
func (f *fuzzed) release() {
	if f.queue.resources.last == 0 {
		return
	}
	client, id := f.client(), 1+uint64(f.Byte())%f.queue.resources.last
	for _, c := range f.calls {
		if !c.answered && c.schedule != nil && slices.ContainsFunc(c.schedule.Closures, func(c closure.Closure) bool { return slices.Contains(c.Resources, id) }) {
			return
		}
	}
	f.releaseOne(client, id)
}

func (f *fuzzed) releaseOne(client string, id uint64) {
	r := closure.ReleaseRequest{Client: client, Resources: []uint64{id, id}}
	want := 0
	if f.owners[id] == client {
		want = 1
		delete(f.owners, id)
	}
	if a, b := f.queue.ReleaseResources(r), f.twin.ReleaseResources(r); a != b || a.Released != want {
		f.t.Fatalf("%s released %d of %d, and of the twin %d", client, a.Released, id, b.Released)
	}
}

// released removes the releases from the actions, and appends them to open.
func (f *fuzzed) released(actions []Action, open []ReleaseOn) ([]Action, []ReleaseOn) {
	return slices.DeleteFunc(actions, func(a Action) bool {
		r, ok := a.(ReleaseOn)
		if ok {
			f.areGone(r.Released)
			open = append(open, r)
		}
		return ok
	}), open
}

func withoutReleased(actions []Action) []Action {
	actions = slices.Clone(actions)
	for i, a := range actions {
		if d, ok := a.(Dispatch); ok {
			d.Released = nil
			actions[i] = d
		}
	}
	return actions
}

// areGone checks that the resources that a host must drop are released.
func (f *fuzzed) areGone(ranges [][2]uint64) {
	for _, r := range ranges {
		if r[0] == 0 || r[0] > r[1] || r[1] > f.queue.resources.last {
			f.t.Fatalf("gone are %v of %d", ranges, f.queue.resources.last)
		}
		for id := r[0]; id <= r[1]; id++ {
			if f.owners[id] != "" || f.queue.resources.get(id) != nil {
				f.t.Fatalf("%d is reported as gone", id)
			}
		}
	}
}

// given checks that a lease has all resources of its closures. A host that does not serve
// builds none.
func (f *fuzzed) given(d Dispatch) {
	f.areGone(d.Released)
	f.telling[d.Number] = d.Released
	serves := len(f.queue.leases[d.Number].host.serving) > 0
	for _, c := range d.Closures {
		for _, id := range c.Resources {
			if !slices.ContainsFunc(d.Resources, func(r closure.Resource) bool { return r.ID == id }) {
				f.t.Fatalf("%d is given out without resource %d", c.ID, id)
			}
			if f.built[d.TaskQueue] == nil {
				f.built[d.TaskQueue] = map[uint64]bool{}
			}
			if serves {
				f.built[d.TaskQueue][id] = true
			}
		}
	}
}

// heard drops the resources that a lease names as released, as its host does.
func (f *fuzzed) heard(lease int) {
	if l := f.queue.leases[lease]; l != nil {
		f.drops(l.host.queue, f.telling[lease])
	}
	delete(f.telling, lease)
}

func (f *fuzzed) drops(queue string, ranges [][2]uint64) {
	for _, r := range ranges {
		for id := range f.built[queue] {
			if r[0] <= id && id <= r[1] {
				delete(f.built[queue], id)
			}
		}
	}
}

func (f *fuzzed) forgetBuilt(queue string) { delete(f.built, queue) }

// answerReleases answers the open releases of hosts.
func (f *fuzzed) answerReleases(ok bool) {
	for _, r := range f.releases {
		if ok {
			f.drops(r.Queue, r.Released)
		}
		f.queue.ReleaseEnded(r.Release, ok)
	}
	for _, r := range f.twins {
		f.twin.ReleaseEnded(r.Release, ok)
	}
	f.releases, f.twins = nil, nil
}

// releaseAll releases all resources, and checks that every host has dropped them.
func (f *fuzzed) releaseAll() {
	for id, owner := range f.owners {
		f.releaseOne(owner, id)
	}
	if n := f.queue.Status().Counts.Resource; n != 0 || f.twin.Status().Counts.Resource != 0 || f.queue.resources.bytes != 0 || len(f.queue.resources.owners) > 0 {
		f.t.Fatalf("%d resources are left: %+v", n, f.queue.resources)
	}
	for range 3 {
		f.step()
		f.answerReleases(true)
	}
	for queue, built := range f.built {
		if len(built) > 0 && !f.over {
			f.t.Fatalf("%s has not heard that %v are gone:\n%s", queue, built, hostsOf(f.queue))
		}
	}
}
