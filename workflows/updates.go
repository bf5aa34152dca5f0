package workflows

import (
	"cmp"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// request is an event with a sender that may wait for an answer.
type request struct {
	event lifecycle.Event
	// placed reports whether this is the placement's result rather than a request. err is the
	// placement's error.
	placed bool
	err    error
	// woken reports whether this only wakes the loop because r has changed.
	woken bool
	// done accepts a spec.RequestAnswer, or a spec.Stopping if stopping is set. It is nil if no
	// sender is waiting.
	done     workflow.Settable
	stopping bool
}

// refused returns the error for an impossible request. If the error concerns only some of the
// tasks, its details name them.
func refused(err error) error {
	var invalid *spec.InvalidRequestError
	var tasks lifecycle.TasksError
	switch {
	case errors.As(err, &invalid):
		return temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrInvalidRequest, nil)
	case errors.As(err, &tasks):
		return temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrRefused, nil, []spec.TaskProblem(tasks))
	case errors.Is(err, lifecycle.ErrNotBegun):
		return temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrNotBegun, nil)
	}
	return temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrRefused, nil)
}

// refusedBy returns the error for a request that failed on a host.
func refusedBy(h *host, err error) error {
	var app *temporal.ApplicationError
	if errors.As(err, &app) && app.Type() == spec.ErrInvalidRequest {
		return temporal.NewNonRetryableApplicationError(app.Message(), spec.ErrInvalidRequest, nil)
	}
	return refused(fmt.Errorf("host %s: %s", h.Name, reasonOf(err)))
}

// serve carries out a request. It repeats the check, because the state may have changed since the
// validator accepted the request.
func (r *clusterRun) serve(ctx workflow.Context, q request) {
	switch {
	case q.woken:
		return
	case q.placed:
		r.begin(ctx, q.err)
		return
	}
	if r.stopPlacing != nil {
		r.servePlacing(q)
		return
	}
	if q.done == nil {
		r.step(ctx, q.event)
		return
	}
	if err := r.machine.Check(q.event); err != nil {
		q.done.SetError(refused(err))
		return
	}
	if q.stopping {
		r.step(ctx, q.event)
		q.done.SetValue(r.machine.Stopping())
		return
	}
	answer := spec.RequestAnswer{Tasks: []string{}}
	waiting := false
	for _, a := range r.machine.Step(q.event) {
		switch a := a.(type) {
		case lifecycle.HostRequest:
			waiting = true
			r.calls.answer(ctx, r.calls.reach(a), answer.Tasks, q.done)
			continue
		case lifecycle.Launch:
			answer.Tasks = append(answer.Tasks, a.Task.Name())
		case lifecycle.Stop:
			answer.Tasks = append(answer.Tasks, a.Tasks...)
		}
		r.carryOut(ctx, a)
	}
	if !waiting {
		if len(answer.Tasks) == 0 && r.machine.Ending() {
			answer.Note = "no task has a process, and the run is ending"
		}
		q.done.SetValue(answer)
	}
}

// servePlacing is like serve, but for requests that arrive while hosts are being reserved. If the
// run is stopped, it finishes once the reservations have returned.
func (r *clusterRun) servePlacing(q request) {
	when := "before its tasks were placed"
	if r.machine.Generation() > 0 {
		when = "while all tasks were being restarted"
	}
	switch e := q.event.(type) {
	case lifecycle.Cancel:
		r.unplacedWhy = cmp.Or(e.Reason, when)
	case lifecycle.TerminateAll:
		r.unplacedWhy = "it was terminated " + when
	case lifecycle.GiveNotice:
		if q.done == nil {
			r.machine.Step(e) // the event concerns the generation that is being placed
			return
		}
		q.done.SetError(refused(r.machine.Check(e)))
		return
	default:
		if q.done == nil {
			return
		}
		switch err := r.machine.Check(q.event); {
		case err != nil:
			q.done.SetError(refused(err))
		case q.stopping: // the request was answered earlier
			q.done.SetValue(r.machine.Stopping())
		default: // without an answer the handler, and thus the run, would never finish
			q.done.SetError(refused(errors.New("its tasks are being placed; try again once they run")))
		}
		return
	}
	r.stopPlacing()
	if q.done != nil {
		note := "its tasks were still pending; the run is cancelled"
		if r.machine.Generation() > 0 {
			note = "all tasks were being restarted; the run is cancelled"
		}
		q.done.SetValue(spec.RequestAnswer{Tasks: []string{}, Note: note})
	}
}

// finishRequests answers late requests and waits for all handlers, so that no client waits for an
// answer from a closed run.
func (r *clusterRun) finishRequests(ctx workflow.Context) error {
	for {
		var q request
		for r.events.ReceiveAsync(&q) {
			if q.done == nil {
				continue
			}
			err := refused(errors.New("the run has ended"))
			if r.next != nil {
				err = errGoesOn()
			}
			q.done.SetError(err)
		}
		if workflow.AllHandlersFinished(ctx) {
			return nil
		}
		if err := workflow.Await(ctx, func() bool {
			return r.events.Len() > 0 || workflow.AllHandlersFinished(ctx)
		}); err != nil {
			return err
		}
	}
}
