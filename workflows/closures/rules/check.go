package rules

import (
	"fmt"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// CheckSchedule returns the reason why a request is refused, or nil. It is for the workflow's
// validator: a refused request leaves no trace in the history. One that was answered before is
// accepted and gets the same answer.
func (q *requests) CheckSchedule(r closure.ScheduleRequest) error {
	if c := q.clients.named[r.Client]; c != nil {
		known, err := c.batches.find(r.Batch)
		if err != nil {
			return fmt.Errorf("schedule of client %s: %w", r.Client, err)
		}
		if known != nil {
			return nil
		}
	}
	if q.ended != "" {
		return q.endedError("schedule closures")
	}
	if err := r.Validate(); err != nil {
		return err
	}
	if len(q.waitlist) >= maxWaiting {
		return tooMany(len(q.waitlist))
	}
	return q.checkNames(r)
}

// CheckWait is [Queue.CheckSchedule] for joins and dones.
func (q *requests) CheckWait(r closure.WaitRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if c := q.clients.named[r.Client]; c != nil {
		known, err := c.waits.find(r.Call)
		if err != nil {
			return fmt.Errorf("join or done of client %s: %w", r.Client, err)
		}
		if known != nil {
			return nil
		}
	}
	if q.ended != "" {
		return q.endedError("wait for closures")
	}
	if len(q.waitlist) >= maxWaiting {
		return tooMany(len(q.waitlist))
	}
	return nil
}

func tooMany(waiting int) error {
	return fmt.Errorf("%w: %d of up to %d; ask again later", ErrTooMany, waiting, maxWaiting)
}

// maxProblems bounds the problems that an error about a request lists.
const maxProblems = 20

// checkNames refuses functions and resources that do not exist.
func (q *dispatcher) checkNames(r closure.ScheduleRequest) error {
	invalid := &spec.InvalidRequestError{}
	note := func(p spec.Problem) {
		if len(invalid.Problems) < maxProblems {
			invalid.Problems = append(invalid.Problems, p)
		} else {
			invalid.More++
		}
	}
	for i := range r.Closures {
		c := &r.Closures[i]
		if q.unregistered(c.Function) {
			note(closure.UnknownFunction(fmt.Sprintf("closures[%d].function", i), c.Function, q.seen.sorted()))
		}
		for _, id := range c.Resources {
			switch res := q.resources.get(id); {
			case res == nil && (id == 0 || id > q.resources.last):
				note(spec.Problem{
					Path:    fmt.Sprintf("closures[%d].resources", i),
					Message: fmt.Sprintf("no resource %d", id),
					Remedy:  "create it first; its ID is in the answer",
				})
			case res == nil || res.released:
				note(spec.Problem{
					Path:    fmt.Sprintf("closures[%d].resources", i),
					Message: fmt.Sprintf("resource %d was released by the client that created it", id),
					Remedy:  "create a new one, and keep it while closures that use it are scheduled",
				})
			}
		}
	}
	if len(invalid.Problems) == 0 {
		return nil
	}
	return invalid
}

// unregistered reports whether no task has ever registered a function. It returns false as
// long as no task has served.
func (q *dispatcher) unregistered(function string) bool {
	return (len(q.hosts) > 0 || len(q.seen.list) > 0) && q.seen.never(function)
}
