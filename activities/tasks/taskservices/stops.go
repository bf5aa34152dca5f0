package taskservices

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// stops forwards tasks' stop requests to their runs.
type stops struct {
	Config
	// tell notifies a run's tasks on this host.
	tell func(runkey.Run, spec.Stopping)

	mu sync.Mutex
	// gates admit one request at a time to each run.
	gates map[runkey.Run]chan struct{}
}

var _ taskapi.Stops = (*stops)(nil)

// RequestStop implements [taskapi.Stops]. Often all tasks ask at the same moment, and a run accepts
// at most ten requests at a time. A host therefore sends one task's request at a time, and sends no
// more once it knows of a stop.
func (s *stops) RequestStop(ctx context.Context, by runkey.Task, request spec.TogetherRequest) (spec.Stopping, error) {
	request.Task, request.Generation, request.BootNanos = by.Task, by.Generation, supervisor.BootNanos()
	request = request.Bounded()
	if request.Key == "" {
		request.Key = rand.Text() // identifies a repeated request
	}
	r, leave, err := s.enter(ctx, by)
	if err != nil {
		return spec.Stopping{}, err
	}
	defer leave()
	if r.Stopping != nil && r.Stopping.Stop {
		return *r.Stopping, nil
	}
	return s.ask(ctx, r, updateOf(by, spec.UpdateStopTogether.Name, request.Key, request))
}

// updateOf returns the update that carries a task's request to its run. The same key gives the
// same update.
func updateOf(by runkey.Task, name, key string, input any) RunUpdate {
	return RunUpdate{ID: fmt.Sprintf("%s/%d/%s/%s", name, by.Generation, by.Task, key), Name: name, Input: input}
}

// askAgain is the time between tries.
var askAgain = retry.Backoff{First: 50 * time.Millisecond, Most: 2 * time.Second}

// Tell sends a request to a run until the run answers or refuses, or ctx is done.
func Tell(ctx context.Context, runs Runs, run runkey.Run, q RunUpdate, answer any) error {
	for again := askAgain; ; {
		err := runs.Update(ctx, run, q, answer)
		if err == nil || errors.As(err, new(*RefusedError)) {
			return err
		}
		if again.Sleep(ctx) != nil {
			return fmt.Errorf("the run did not answer: %w", err)
		}
	}
}

// ask sends a request to a run. The host uses the answer immediately.
func (s *stops) ask(ctx context.Context, run Run, q RunUpdate) (now spec.Stopping, err error) {
	if err := Tell(ctx, s.Runs, run.Key, q, &now); err != nil {
		return spec.Stopping{}, err
	}
	known, err := s.learn(run.Key, now)
	if err != nil {
		// The run has decided, and will notify this host.
		s.Log.Warn("could not store a run's answer", zap.String("run", run.Key.WorkflowID), zap.Error(err))
		return now, nil
	}
	return known, nil
}

// learn implements [Services.Learn]. The note is written first, so that the next host worker sends
// the tasks the same state.
func (s *stops) learn(run runkey.Run, now spec.Stopping) (spec.Stopping, error) {
	r, err := s.Plans.Note(run, func(n *Notes) {
		if n.Stopping == nil || n.Stopping.Seq < now.Seq {
			n.Stopping = &now
		}
	})
	if err != nil {
		return now, err
	}
	if !r.Released {
		s.tell(run, *r.Stopping)
	}
	return *r.Stopping, nil
}

// enter waits until no other task of this host is asking the run, and then returns the run.
func (s *stops) enter(ctx context.Context, by runkey.Task) (r Run, leave func(), err error) {
	run := by.Run
	s.mu.Lock()
	gate := s.gates[run]
	if gate == nil {
		gate = make(chan struct{}, 1)
		if s.gates == nil {
			s.gates = map[runkey.Run]chan struct{}{}
		}
		s.gates[run] = gate
	}
	s.mu.Unlock()
	select {
	case gate <- struct{}{}:
	case <-ctx.Done():
		return r, nil, fmt.Errorf("other requests on this host are already waiting for the run's answer: %w", ctx.Err())
	}
	leave = func() { <-gate }
	if r, err = s.runOf(by); err != nil {
		leave()
	}
	return r, leave, err
}

// forget drops the gate of a run that is no longer asked.
func (s *stops) forget(run runkey.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.gates, run)
}
