package taskapi

import (
	"context"
	"errors"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Coordinators pass the requests of processes that schedule closures on to the queue of their
// run. They need no state of a process: it has a name, which is that of a client of the
// queue, numbers its requests, and knows how far it has read. While the server is away, they
// retry until ctx ends.
type Coordinators interface {
	// Open creates the queue if there is none. process is the number of the calling process
	// among those of the task: what earlier processes have created is released.
	Open(ctx context.Context, by runkey.Task, process int) (Opened, error)
	Schedule(ctx context.Context, by runkey.Task, in closure.ScheduleRequest) (closure.ScheduleAnswer, error)
	Join(ctx context.Context, by runkey.Task, in closure.WaitRequest) (closure.WaitAnswer, error)
	Done(ctx context.Context, by runkey.Task, in closure.WaitRequest) (closure.WaitAnswer, error)
	CreateResource(ctx context.Context, by runkey.Task, in closure.ResourceRequest) (closure.ResourceAnswer, error)
	ReleaseResources(ctx context.Context, by runkey.Task, in closure.ReleaseRequest) (closure.ReleaseAnswer, error)
	Cancel(ctx context.Context, by runkey.Task, in closure.CancelRequest) (closure.CancelAnswer, error)
	// Outcomes returns the history after a position. It waits until there is something.
	Outcomes(ctx context.Context, by runkey.Task, session, after string, wait time.Duration) (Outcomes, error)
	// Find returns the outcomes of those closures that have ended.
	Find(ctx context.Context, by runkey.Task, ids []uint64) (map[uint64]closure.Outcome, error)
}

// Opened describes a queue that exists.
type Opened struct {
	// At is the end of its history.
	At string
	// Room is how many closures can be scheduled before the queue reports its room.
	Room int
}

// Outcomes are a piece of the history of a queue: first Outcomes, and then Cancelled.
type Outcomes struct {
	At        string
	Outcomes  []closure.Outcome
	Cancelled []CancelledClosures
}

// CancelledClosures are a range of closures that the queue has cancelled.
type CancelledClosures = wire.CancelledClosures

// ErrRunOver is returned if a queue cannot be used because its run has ended.
var ErrRunOver = errors.New("the run has ended, and its closures with it")

// caller is a process of a task, with its number, which it knows as its restart count.
type caller struct {
	ID      runkey.Task
	process int
}

func (e *endpoint) caller() caller {
	e.mu.Lock()
	defer e.mu.Unlock()
	return caller{e.id, e.task.RestartCount}
}

// coordinating returns the handler of a request of type Q. prepare returns a problem if the
// request is invalid.
func coordinating[Q, A any](prepare func(*Q) *wire.Problem, ask func(ctx context.Context, c Coordinators, by caller, in *Q) (A, error)) handler {
	return func(r *request) (any, *wire.Problem) {
		c := r.server.Coordinators
		if c == nil {
			return nil, &wire.Problem{Code: wire.CodeNotThere, Message: "this host worker has no closures that its tasks could schedule"}
		}
		var in Q
		if problem := r.decode(&in, maxClosures); problem != nil {
			return nil, problem
		}
		if problem := prepare(&in); problem != nil {
			return nil, problem
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(r.endpoint.ended, cancel)()
		out, err := ask(ctx, c, r.endpoint.caller(), &in)
		var refused *closure.RefusedError
		switch {
		case context.Cause(r.endpoint.ended) != nil:
			return nil, &wire.Problem{Code: wire.CodeOver, Message: context.Cause(r.endpoint.ended).Error()}
		case err == nil:
			return out, nil
		case errors.Is(err, ErrRunOver):
			return nil, &wire.Problem{Code: wire.CodeOver, Message: err.Error()}
		case errors.As(err, &refused):
			return nil, invalidRequest(wire.CodeQueueRefused, refused.Reason)
		}
		return nil, internal(err)
	}
}

var (
	postCoordinatorOpen = coordinating(
		func(*struct{}) *wire.Problem { return nil },
		func(ctx context.Context, c Coordinators, by caller, _ *struct{}) (wire.CoordinatorOpened, error) {
			o, err := c.Open(ctx, by.ID, by.process)
			return wire.CoordinatorOpened(o), err
		})
	postCoordinatorSchedule = coordinating(checkSchedule, schedule)
	postCoordinatorJoin     = coordinating(checkWait, waiting(Coordinators.Join))
	postCoordinatorDone     = coordinating(checkWait, waiting(Coordinators.Done))

	postCoordinatorResources = coordinating(checkResource,
		func(ctx context.Context, c Coordinators, by caller, in *wire.ResourceRequest) (closure.ResourceAnswer, error) {
			request := resourceOf(in)
			request.Task, request.Process = by.ID.Task, by.process
			return c.CreateResource(ctx, by.ID, request)
		})
	postCoordinatorRelease = coordinating(checkRelease,
		func(ctx context.Context, c Coordinators, by caller, in *wire.ReleaseRequest) (closure.ReleaseAnswer, error) {
			return c.ReleaseResources(ctx, by.ID, releaseOf(in))
		})
	postCoordinatorCancel = coordinating(checkCancel,
		func(ctx context.Context, c Coordinators, by caller, in *closure.CancelRequest) (closure.CancelAnswer, error) {
			return c.Cancel(ctx, by.ID, *in)
		})
	postCoordinatorOutcomes = coordinating(checkOutcomes, outcomes)
	postCoordinatorFind     = coordinating(checkFind, find)
)

func schedule(ctx context.Context, c Coordinators, by caller, in *wire.ScheduleRequest) (wire.Scheduled, error) {
	a, err := c.Schedule(ctx, by.ID, scheduleOf(in))
	if err != nil {
		return wire.Scheduled{}, err
	}
	out := wire.Scheduled{IDs: a.IDs(len(in.Closures)), Epoch: a.Epoch, Raised: a.Raised, Cancelled: a.Cancelled, Room: a.Room}
	for i := range in.Closures {
		if _, known := a.Known[i]; known {
			out.Known = append(out.Known, i)
		}
	}
	return out, nil
}

// waiting blocks the request until it is answered, by either Join or Done.
func waiting(how func(Coordinators, context.Context, runkey.Task, closure.WaitRequest) (closure.WaitAnswer, error)) func(context.Context, Coordinators, caller, *wire.WaitRequest) (closure.WaitAnswer, error) {
	return func(ctx context.Context, c Coordinators, by caller, in *wire.WaitRequest) (closure.WaitAnswer, error) {
		return how(c, ctx, by.ID, closure.WaitRequest{Client: in.Session, Call: in.Call})
	}
}

func outcomes(ctx context.Context, c Coordinators, by caller, in *wire.OutcomesRequest) (wire.CoordinatorOutcomes, error) {
	o, err := c.Outcomes(ctx, by.ID, in.Session, in.After, time.Duration(in.Wait*float64(time.Second)))
	if err != nil {
		return wire.CoordinatorOutcomes{}, err
	}
	out := wire.CoordinatorOutcomes{At: o.At, Outcomes: make([]closure.Outcome, len(o.Outcomes)), Cancelled: o.Cancelled}
	for i := range o.Outcomes {
		out.Outcomes[i] = outcomeOf(o.Outcomes[i], in.Tuples)
	}
	return out, nil
}

func find(ctx context.Context, c Coordinators, by caller, in *wire.FindRequest) (wire.Found, error) {
	found, err := c.Find(ctx, by.ID, in.Closures)
	out := wire.Found{Outcomes: []closure.Outcome{}}
	for _, o := range found {
		out.Outcomes = append(out.Outcomes, outcomeOf(o, in.Tuples))
	}
	return out, err
}

// outcomeOf returns an outcome in a form that the program understands: with or without
// tuples. It returns a copy, because the outcomes of a batch are shared.
func outcomeOf(o closure.Outcome, tuples bool) closure.Outcome {
	if !tuples {
		o.Value = closure.PlainValue(o.Value)
	}
	return o
}
