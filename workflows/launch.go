package workflows

import (
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// launch is an open RunTask activity.
type launch struct {
	id     string
	cancel workflow.CancelFunc
}

func (r *clusterRun) launch(ctx workflow.Context, a lifecycle.Launch) {
	name := a.Task.Name()
	h, ok := r.placed[name]
	if !ok {
		// Outside the spec: it joins the host of the first task.
		h = r.hosts[0]
		r.placed[name] = h
	}
	l := &launch{id: activities.ActivityID(name, a.Generation, a.Launch)}
	actx, cancel := workflow.WithCancel(ctx)
	l.cancel = cancel
	r.launches[name] = l
	in := activities.RunTaskInput{Task: name, Generation: a.Generation, Launch: a.Launch}
	if a.Added {
		// Started by an operator, perhaps with another command than the spec has.
		in.Added = &a.Task
	}
	summary := fmt.Sprintf("%s on %s", name, h.name)
	if a.Generation > 0 {
		summary += fmt.Sprintf(", generation %d", a.Generation)
	}
	if a.Launch > 0 {
		summary += fmt.Sprintf(", start %d", a.Launch+1)
	}
	actx = running(actx, h.queue, l.id, summary, len(r.hosts) > 1)
	f := call(actx, spec.ActivityRunTask, (*activities.Host).RunTask, in)
	r.selector.AddFuture(f.Future, func(workflow.Future) {
		out, err := f.get(ctx)
		delete(r.launches, name)
		exit := exitFrom(out, err, h.name)
		if exit != nil && exit.Cause == spec.CauseHostLost {
			r.lost[h.queue] = true
		}
		r.step(ctx, lifecycle.TaskEnded{Task: name, Generation: a.Generation, Launch: a.Launch, Exit: exit})
	})
}

// stop cancels activities; a host takes that as: stop with grace.
func (r *clusterRun) stop(a lifecycle.Stop) {
	for _, name := range a.Tasks {
		if l, ok := r.launches[name]; ok {
			l.cancel()
		}
	}
}

// exitFrom reads how the process ended from how the activity did. A host's own
// account is in the details of errors. Where there is none the machine is told
// so: the activity was cancelled while no process ran, or between a failure and
// the restart, and Release will have the rest.
func exitFrom(out activities.RunTaskOutput, err error, host string) *spec.Exit {
	var exit spec.Exit
	var app *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	var timeout *temporal.TimeoutError
	switch {
	case err == nil:
		return &out.Exit
	case errors.As(err, &cancelled):
		if cancelled.HasDetails() && cancelled.Details(&exit) == nil && exit.Cause != "" {
			return &exit
		}
	case errors.As(err, &app):
		if app.HasDetails() && app.Details(&exit) == nil && exit.Cause != "" {
			return &exit
		}
	case errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		return &spec.Exit{
			ExitCode: -1, Cause: spec.CauseHostLost,
			Message: fmt.Sprintf("host %s did not come back within %s", host, spec.Duration(hostLostAfter)),
		}
	}
	return nil
}
