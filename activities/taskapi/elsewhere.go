package taskapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/clusterrun/clusterrun/activities/taskapi/internal/wire"
)

// arrivalKey names an arrival among those of a generation.
type arrivalKey struct{ task, name, key string }

// elsewheres are the arrivals that wait for others to release their barrier, so that
// they can be taken back from another connection.
type elsewheres struct {
	mu      sync.Mutex
	waiting map[arrivalKey][]*elsewhereWait
}

type elsewhereWait struct {
	withdraw context.CancelFunc
	done     chan struct{}
}

// enter returns a context that ends when the arrival is taken back, and what to call
// after the wait.
func (e *elsewheres) enter(ctx context.Context, key arrivalKey) (waiting context.Context, leave func()) {
	waiting, cancel := context.WithCancel(ctx)
	w := &elsewhereWait{cancel, make(chan struct{})}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting == nil {
		e.waiting = map[arrivalKey][]*elsewhereWait{}
	}
	e.waiting[key] = append(e.waiting[key], w)
	return waiting, func() {
		cancel()
		e.mu.Lock()
		defer e.mu.Unlock()
		all := e.waiting[key]
		if i := slices.Index(all, w); len(all) > 1 {
			e.waiting[key] = slices.Delete(slices.Clone(all), i, i+1)
		} else {
			delete(e.waiting, key)
		}
		close(w.done)
	}
}

// withdraw ends the waits of an arrival, and returns when what came of them is known.
func (e *elsewheres) withdraw(ctx context.Context, key arrivalKey) {
	e.mu.Lock()
	all := e.waiting[key]
	e.mu.Unlock()
	for _, w := range all {
		w.withdraw()
		select {
		case <-w.done:
		case <-ctx.Done():
			return
		}
	}
}

// arriveElsewhere has others release the barrier.
func (r *request) arriveElsewhere(a Arrival) (any, *wire.Problem) {
	rounds := r.endpoint.rounds
	ctx, leave := rounds.away.enter(r.Context(), arrivalKey{a.Task, a.Name, a.Key})
	defer leave()
	released, err := r.server.Barriers.Arrive(ctx, a)
	var broken *BarrierError
	switch {
	case err == nil:
		released.Index, released.Parties = slices.Index(a.Participants, a.Task), len(a.Participants)
		rounds.keep(a, outcome{released: &released})
		return &released, nil
	case errors.As(err, &broken):
		problem := broken.problem()
		rounds.keep(a, outcome{problem: problem})
		return nil, problem
	case errors.Is(err, context.Canceled) && r.Context().Err() != nil:
		return nil, &wire.Problem{Code: wire.CodeBarrierWithdrawn, Message: "the connection was closed"}
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return nil, withdrawnFrom(a.Name)
	}
	return nil, internal(fmt.Errorf("barrier %q: %w", a.Name, err))
}

// keep remembers an answer that others gave, for who takes the arrival back too late.
func (r *rounds) keep(a Arrival, out outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remember(a.Task, a.Name, a.Key, out)
}

func withdrawnFrom(name string) *wire.Problem {
	return &wire.Problem{Code: wire.CodeBarrierWithdrawn, Message: fmt.Sprintf("the arrival at barrier %q was withdrawn", name)}
}
