package taskapi

import (
	"context"
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/activities/internal/wire"
	"github.com/clusterrun/clusterrun/activities/runkey"
	"github.com/clusterrun/clusterrun/workflows/shorten"
)

// Arrival is a task at a barrier.
type Arrival struct {
	Run        runkey.Run
	Generation int
	Task       string
	// Name is the barrier's.
	Name string
	// Key names this arrival: one that comes again with the same key is the same.
	Key string
	// Participants are tasks in rank order; Task is among them.
	Participants []string
	// Here are those of them on this host.
	Here []string
	// Value is what it brings for the others.
	Value string
	// Timeout bounds the wait. 0: nothing does.
	Timeout time.Duration
}

// atOnce is the timeout of an arrival that asked for 0: it waits for nobody, unless it
// is the last.
const atOnce = time.Nanosecond

// Release is the answer at a barrier: its round, counted from 1, and the place of
// the task among its participants.
type Release = wire.Released

// Barriers releases barriers across hosts.
type Barriers interface {
	// Arrive returns the round once it is released, and a [BarrierError] where it
	// will not be. When ctx ends the arrival is withdrawn, unless the round was
	// released. [ErrComeAgain] ends the wait, but not the arrival.
	Arrive(ctx context.Context, a Arrival) (Release, error)
}

// BarrierError says why a barrier does not let a task pass.
type BarrierError struct {
	Why     BarrierWhy
	Message string
	// Standing is how the round stood, where that is known.
	Standing *Standing
}

// BarrierWhy is why a barrier does not let a task pass. It is what tasks are told as
// the code of the problem.
type BarrierWhy string

// The values of [BarrierWhy].
const (
	// TimedOut: the time of an arrival has passed.
	TimedOut BarrierWhy = wire.CodeBarrierTimeout
	// Broken: a participant has ended, or the generation has.
	Broken BarrierWhy = wire.CodeBarrierBroken
	// OtherParticipants: others wait for other participants under this name.
	OtherParticipants BarrierWhy = wire.CodeBarrierMismatch
	// TooOften: the task waits there already.
	TooOften BarrierWhy = wire.CodeAlreadyWaiting
	// TooLarge: the values of the round are too large together.
	TooLarge BarrierWhy = wire.CodeTooLarge
)

// Standing is how a round stood when it broke: who had arrived, who had not, and
// for how long those who had were kept.
type Standing = wire.Standing

func (e *BarrierError) Error() string { return e.Message }

func (e *BarrierError) problem() *wire.Problem {
	return &wire.Problem{Code: string(e.Why), Message: e.Message, Barrier: e.Standing}
}

// participants returns those an arrival names, in rank order: tasks, and types for
// all their tasks in the spec.
func (v *View) participants(names []string) ([]string, *wire.Problem) {
	if len(names) == 0 {
		return v.Tasks, nil
	}
	// Every task of a large run may name all the others.
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
	names := make([]string, len(v.Members))
	for i, m := range v.Members {
		names[i] = m.Task
	}
	return names
}

// enumerate writes names the way one says them, and not a thousand of them.
func enumerate(names []string) string {
	const most = 20
	return shorten.List(names, most)
}

func cutName(name string) string { return shorten.Text(name, 60) }
