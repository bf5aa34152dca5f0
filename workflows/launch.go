package workflows

import (
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/markdown"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// launch is an open RunTask activity.
type launch struct {
	id     string
	cancel workflow.CancelFunc
}

func (r *clusterRun) launch(ctx workflow.Context, a lifecycle.Launch) {
	name := a.Task.Name()
	h := r.hostOf(name)
	r.placed[name] = h
	l := &launch{id: spec.TaskActivityID(name, a.Generation, a.Launch)}
	actx, cancel := workflow.WithCancel(ctx)
	l.cancel = cancel
	r.launches[name] = l
	in := activities.RunTaskInput{Run: r.began, Execution: r.execution, Task: name, Generation: a.Generation, Launch: a.Launch}
	if a.Added {
		// Started by an operator, perhaps with another command than the spec has.
		in.Added = &a.Task
	}
	summary := fmt.Sprintf("%s on %s", markdown.Name(name), markdown.Name(h.name))
	if a.Generation > 0 {
		summary += fmt.Sprintf(", generation %d", a.Generation)
	}
	if a.Launch > 0 {
		summary += fmt.Sprintf(", start %d", a.Launch+1)
	}
	actx = running(actx, h.queue, l.id, summary, r.spec.StopAfter(len(r.hosts)), r.givenUp(len(r.hosts)))
	f := call(actx, spec.ActivityRunTask, (*activities.Host).RunTask, in)
	r.selector.AddFuture(f.Future, func(workflow.Future) {
		out, err := f.get(ctx)
		delete(r.launches, name)
		exit := exitFrom(out, err, r.givenUpText(h.name))
		if exit == nil {
			r.unsettled[h.queue] = true
		}
		if exit != nil && exit.Cause == spec.CauseHostLost {
			r.lost[h.queue] = true
		}
		r.step(ctx, lifecycle.TaskEnded{Task: name, Generation: a.Generation, Launch: a.Launch, Host: h.name, Exit: exit})
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
func exitFrom(out activities.RunTaskOutput, err error, givenUp string) *spec.Exit {
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
			Message: givenUp,
		}
	}
	return nil
}
