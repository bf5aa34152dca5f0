package taskapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// visits holds a task's arrivals at barriers that are not local.
type visits struct {
	mu      sync.Mutex
	waiting []*visit
}

// visit is a connection that waits for an arrival's answer.
type visit struct {
	name, key string
	end       context.CancelCauseFunc
	// left is closed once the answer, if any, has been recorded.
	left chan struct{}
}

// endedError is the cause of a visit stopped by this server.
type endedError struct{ *wire.Problem }

func (e endedError) Error() string { return e.Message }

// arriveElsewhere arrives at a barrier that is not local. It returns false if the connection must
// be cut, so that the client arrives again.
func (r *request) arriveElsewhere(ctx context.Context, a barriers.Arrival) (o outcome, ok bool) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	here := &r.endpoint.visits
	v := &visit{name: a.Name, key: a.Key, end: end, left: make(chan struct{})}
	here.enter(v)
	defer here.leave(v)
	resume := r.endpoint.waits(a)
	defer resume(outcome{})
	came := time.Now()
	release, err := r.server.Barriers.Arrive(ctx, a)
	var broken *barriers.Error
	var ended endedError
	switch {
	case err == nil:
		o.released = &wire.Released{
			Round: release.Round + 1, Index: slices.Index(a.Participants, a.Task), Parties: len(a.Participants),
			Values: spec.ValuesOf(release.Values, a.Participants),
		}
		resume(o)
		r.endpoint.rounds.answered(a.Task, a.Name, a.Key, o)
	case errors.Is(err, barriers.ErrShutdown):
		return o, false
	case errors.As(err, &broken):
		o.problem = &wire.Problem{Code: broken.Code, Message: broken.Message, Barrier: standing(broken, a, came)}
		r.endpoint.rounds.answered(a.Task, a.Name, a.Key, o)
	case errors.As(context.Cause(ctx), &ended):
		o.problem = ended.Problem
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		o.problem = &wire.Problem{Code: wire.CodeBarrierWithdrawn, Message: "the connection was closed"}
	default:
		o.problem = internal(fmt.Errorf("barrier %q: %w", a.Name, err))
	}
	return o, true
}

// standing returns a broken round's state, or nil if it is unknown because the server was away or
// the round was terminated. The server's and this host's clocks may differ, so the wait is counted
// from this task's arrival.
func standing(broken *barriers.Error, a barriers.Arrival, came time.Time) *wire.Standing {
	if len(broken.Missing) == 0 {
		return nil
	}
	s := &wire.Standing{Name: a.Name, Round: broken.Round + 1, Arrived: []string{}, Waited: time.Since(came).Seconds()}
	missing := map[string]bool{}
	// A task that never arrived has been missing since the first arrival.
	since := broken.Missing[0].Since
	for _, m := range broken.Missing {
		s.Missing = append(s.Missing, m.Task)
		missing[m.Task] = true
		if m.Since.Before(since) {
			since = m.Since
		}
	}
	s.Since = since.UTC().Format(time.RFC3339)
	for _, task := range a.Participants {
		if !missing[task] {
			s.Arrived = append(s.Arrived, task)
		}
	}
	return s
}

func (l *visits) enter(v *visit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, v)
}

func (l *visits) leave(v *visit) {
	defer close(v.left)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(o *visit) bool { return o == v })
}

// withdraw withdraws an arrival by its key, unless it has just been answered.
func (l *visits) withdraw(ctx context.Context, name, key string) {
	for _, v := range l.of(name, key) {
		v.end(endedError{withdrawn(name)})
		select {
		case <-v.left:
		case <-ctx.Done():
		}
	}
}

// of returns an arrival's visits.
func (l *visits) of(name, key string) []*visit {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*visit
	for _, v := range l.waiting {
		if v.name == name && v.key == key {
			all = append(all, v)
		}
	}
	return all
}

// endAll withdraws all arrivals, because the process that arrived has exited or its generation has
// ended.
func (l *visits) endAll(why *wire.Problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.waiting {
		v.end(endedError{why})
	}
}

func withdrawn(name string) *wire.Problem {
	return &wire.Problem{Code: wire.CodeBarrierWithdrawn, Message: fmt.Sprintf("the arrival at barrier %q was withdrawn", name)}
}

// ofEnded returns the answer to an ended process's arrival.
func ofEnded(task string) *wire.Problem {
	return &wire.Problem{Code: wire.CodeBarrierWithdrawn, Message: fmt.Sprintf("the process of %s that arrived has exited", task)}
}

func overBecause(why string) *wire.Problem {
	return &wire.Problem{Code: wire.CodeBarrierBroken, Message: "the barrier is broken: " + why}
}
