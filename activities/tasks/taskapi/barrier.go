package taskapi

import (
	"context"
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// atOnce is the timeout of an arrival that requested a timeout of 0. Such an arrival does not wait,
// but may be the last one and release the barrier.
const atOnce = time.Nanosecond

// Barriers releases barriers across hosts.
type Barriers interface {
	// Arrive returns the round once it is released, or a [barriers.Error] if it will not be
	// released. When ctx is done, the arrival is withdrawn, unless the round was released.
	// [barriers.ErrShutdown] stops the wait, but does not withdraw the arrival: the client's
	// connection is cut without an answer, and the client arrives again with the same key at the
	// next server.
	Arrive(ctx context.Context, a barriers.Arrival) (barriers.Release, error)
}

// participants returns an arrival's participants in rank order. A name is either a task's name, or
// a type that stands for all of its tasks in the spec.
func (v *View) participants(names []string) ([]string, *wire.Problem) {
	if len(names) == 0 {
		return v.Tasks, nil
	}
	// inSpec is a map because every task of a large run may name all tasks.
	inSpec := make(map[string]bool, len(v.Tasks))
	for _, task := range v.Tasks {
		inSpec[task] = true
	}
	called := make(map[string][]string, len(v.Members))
	for _, m := range v.Members {
		called[m.Task] = append(called[m.Task], m.Task)
		if inSpec[m.Task] {
			called[m.Type] = append(called[m.Type], m.Task)
		}
	}
	wanted := make(map[string]bool, len(v.Members))
	for i, name := range names {
		tasks, found := called[name]
		for _, task := range tasks {
			wanted[task] = true
		}
		if !found {
			return nil, invalid(fmt.Sprintf("participants[%d]", i),
				fmt.Sprintf("the cluster has no task and no type %q; it has %s", cutName(name), enumerate(v.names())))
		}
	}
	var out []string
	for _, m := range v.Members {
		if wanted[m.Task] {
			out = append(out, m.Task)
		}
	}
	return out, nil
}

func (v *View) names() []string {
	return list.Of(v.Members, func(m Member) string { return m.Task })
}

// enumerate formats at most 20 names as a readable list.
func enumerate(names []string) string {
	const most = 20
	return shorten.List(names, most)
}

func cutName(name string) string { return shorten.Text(name, 60) }
