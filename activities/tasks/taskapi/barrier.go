package taskapi

import (
	"context"
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Arrival is the arrival of a task at a barrier.
type Arrival struct {
	Run        runkey.Run
	Generation int
	Task       string
	// Name is the name of the barrier.
	Name string
	// Key names this arrival: a repeated arrival has the same key.
	Key string
	// Participants are tasks in rank order, including Task.
	Participants []string
	// Here are the participants on this host.
	Here []string
	// Value is passed to the other participants.
	Value string
	// Timeout bounds the wait. 0 means no limit.
	Timeout time.Duration
}

// atOnce is the timeout of an arrival whose request has the timeout 0. Such an arrival does not
// wait, but may be the last one and release the barrier.
const atOnce = time.Nanosecond

// Release is the answer at a barrier: the round, counted from 1, and the place of the task
// among the participants.
type Release = wire.Released

// Barriers releases barriers across hosts.
type Barriers interface {
	// Arrive returns the round once it is released, and a [BarrierError] if it will not be.
	// When ctx ends, the arrival is withdrawn, unless the round was released. [ErrComeAgain]
	// ends the wait, but not the arrival.
	Arrive(ctx context.Context, a Arrival) (Release, error)
}

// BarrierError says why a barrier does not let a task pass.
type BarrierError struct {
	// Code is the code of the problem that the task receives.
	Code, Message string
	// Standing is the state of the round, if it is known.
	Standing *Standing
}

// Standing is the state of a round when it broke: who had arrived, who was missing, and how
// long those that had arrived waited.
type Standing = wire.Standing

func (e *BarrierError) Error() string { return e.Message }

func (e *BarrierError) problem() *wire.Problem {
	return &wire.Problem{Code: e.Code, Message: e.Message, Barrier: e.Standing}
}

// participants returns the participants that an arrival names, in rank order. A name is a
// task, or a type for all its tasks in the spec.
func (v *View) participants(names []string) ([]string, *wire.Problem) {
	if len(names) == 0 {
		return v.Tasks, nil
	}
	// A map, because every task of a large run may name all the others.
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

// enumerate formats names as a readable list, with at most 20 of them.
func enumerate(names []string) string {
	const most = 20
	return shorten.List(names, most)
}

func cutName(name string) string { return shorten.Text(name, 60) }
