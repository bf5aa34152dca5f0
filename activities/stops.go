package activities

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/retry"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/taskapi"
	"github.com/clusterrun/clusterrun/activities/taskservices"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// stops brings the wishes of tasks to stop together to their runs.
type stops struct{ host *Host }

var _ taskapi.Stops = stops{}

// RequestStop implements [taskapi.Stops]. Often all tasks ask at the same moment,
// and a run takes no more than ten requests at a time: so a host asks for one task
// after the other, and no more once it knows of a stop. A clear that has not arrived
// here yet came after a wish that is answered so.
func (s stops) RequestStop(ctx context.Context, by taskapi.ID, wish spec.TogetherRequest) (spec.Stopping, error) {
	wish.Task, wish.Generation, wish.BootNanos = by.Task, by.Generation, supervisor.BootNanos()
	wish = wish.Bounded()
	if wish.Key == "" {
		wish.Key = rand.Text() // it may have to be sent more than once
	}
	run := runKey(by.Run)
	leave, err := s.host.asking.enter(ctx, run)
	if err != nil {
		return spec.Stopping{}, err
	}
	defer leave()
	p, err := s.host.planOf(by)
	if err != nil {
		return spec.Stopping{}, err
	}
	if p.Stopping != nil && p.Stopping.Stop {
		return *p.Stopping, nil
	}
	return s.host.askRun(ctx, run, taskservices.RunUpdate{
		ID:   fmt.Sprintf("%s/%d/%s/%s", spec.UpdateStopTogether, by.Generation, by.Task, wish.Key),
		Name: spec.UpdateStopTogether, Input: wish,
	})
}

// ClearStop implements [taskapi.Stops].
func (s stops) ClearStop(ctx context.Context, by taskapi.ID) (spec.Stopping, error) {
	run := runKey(by.Run)
	leave, err := s.host.asking.enter(ctx, run)
	if err != nil {
		return spec.Stopping{}, err
	}
	defer leave()
	if _, err := s.host.planOf(by); err != nil {
		return spec.Stopping{}, err
	}
	return s.host.askRun(ctx, run, taskservices.RunUpdate{
		ID:   fmt.Sprintf("%s/%d/%s/%s", spec.UpdateClearStop, by.Generation, by.Task, rand.Text()),
		Name: spec.UpdateClearStop, Input: spec.ClearStopRequest{Task: by.Task, Generation: by.Generation},
	})
}

var errReleased = errors.New("the run is released on this host")

// planOf is the plan of the generation that a task is of.
func (h *Host) planOf(by taskapi.ID) (*plan, error) {
	p, err := h.plans.get(runKey(by.Run))
	switch {
	case errors.Is(err, errNoPlan), err == nil && p.Released:
		return nil, errReleased
	case err != nil:
		return nil, err
	case p.Generation != by.Generation:
		return nil, fmt.Errorf("generation %d of the group is over; this is generation %d", by.Generation, p.Generation)
	}
	return p, nil
}

// askAgain is how long a host waits before it asks a run again that did not answer.
var askAgain = retry.Backoff{First: 50 * time.Millisecond, Most: 2 * time.Second}

// askRun has a run answer, however long its server is away. What it says is known
// here at once.
func (h *Host) askRun(ctx context.Context, run supervisor.RunKey, q taskservices.RunUpdate) (spec.Stopping, error) {
	for again := askAgain; ; {
		var s spec.Stopping
		err := h.Runs.Update(ctx, run, q, &s)
		var refused *taskservices.RefusedError
		switch {
		case err == nil:
			known, err := h.learn(run, s)
			if err != nil {
				// The run has decided, and tells this host once more.
				h.Log.Warn("what a run answered could not be kept", zap.String("run", run.WorkflowID), zap.Error(err))
				return s, nil
			}
			return known, nil
		case errors.As(err, &refused):
			return spec.Stopping{}, refused
		}
		h.Log.Debug("a run did not answer; asking again", zap.String("run", run.WorkflowID), zap.String("update", q.Name), zap.Error(err))
		if again.Sleep(ctx) != nil {
			return spec.Stopping{}, fmt.Errorf("the run did not answer: %w", err)
		}
	}
}

// learn keeps what a run says of stopping together, unless something newer is known,
// and has its tasks know. It returns what is known then. The plan comes first: what
// the tasks have been told they are told again by the next host worker.
func (h *Host) learn(run supervisor.RunKey, s spec.Stopping) (spec.Stopping, error) {
	p, err := h.plans.update(run, func(p *plan) (*plan, error) {
		if p == nil {
			return nil, errNoPlan
		}
		if p.Stopping == nil || p.Stopping.Seq < s.Seq {
			p.Stopping = &s
		}
		return p, nil
	})
	if err != nil {
		return s, err
	}
	if !p.Released {
		h.tasks.SetStopping(taskRun(run), *p.Stopping)
	}
	return *p.Stopping, nil
}

// gates let one at a time ask a run.
type gates struct {
	mu  sync.Mutex
	all map[supervisor.RunKey]chan struct{}
}

func (g *gates) enter(ctx context.Context, run supervisor.RunKey) (leave func(), err error) {
	g.mu.Lock()
	gate := g.all[run]
	if gate == nil {
		gate = make(chan struct{}, 1)
		if g.all == nil {
			g.all = map[supervisor.RunKey]chan struct{}{}
		}
		g.all[run] = gate
	}
	g.mu.Unlock()
	select {
	case gate <- struct{}{}:
		return func() { <-gate }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("other tasks of this host were waiting for the run to answer: %w", ctx.Err())
	}
}

// forget is for runs that nobody asks any more.
func (g *gates) forget(run supervisor.RunKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.all, run)
}
