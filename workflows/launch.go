package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lease"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

// launch is a task's launch that is not known to have ended.
type launch struct {
	id string // the ID of its first RunTask activity
	// open is the ID of its last RunTask activity.
	open string
	// cancel cancels the activity. In a group it cancels all activities, since the machine stops
	// all tasks or none.
	cancel workflow.CancelFunc
}

// launch starts a task's RunTask activity in the run's own workflow.
func (r *clusterRun) launch(ctx workflow.Context, a lifecycle.Launch) {
	name := a.Task.Name()
	h := r.placer.hostOf(name)
	actx, cancel := workflow.WithCancel(ctx)
	r.placed[name], r.launches[name] = h, newLaunch(a, cancel)
	at, in := r.placer.carrierOn(h), r.runTaskInput(a)
	l := r.launches[name]
	at.here = r.startsHere(ctx, a)
	f := at.runTask(actx, in, func(id string) { l.open = id })
	r.selector.AddFuture(f.Future, func(workflow.Future) {
		exit, err := f.get(ctx)
		r.noteHeard(ctx, at, err)
		r.ended(ctx, at.endOf(in, exit, err))
	})
}

func newLaunch(a lifecycle.Launch, cancel workflow.CancelFunc) *launch {
	id := spec.TaskActivityID(a.Task.Name(), a.Generation, a.Launch)
	return &launch{id: id, open: id, cancel: cancel}
}

func (r *clusterRun) runTaskInput(a lifecycle.Launch) hostapi.RunTaskInput {
	in := hostapi.RunTaskInput{Run: r.began, Execution: r.execution, Task: a.Task.Name(), Generation: a.Generation, Launch: a.Launch}
	if a.Added {
		// An operator started the task, perhaps with a different command than in the spec.
		in.Added = &a.Task
	}
	return in
}

// ended passes a launch's end to the machine. A group may report the same end twice.
func (r *clusterRun) ended(ctx workflow.Context, e lifecycle.TaskEnded) {
	h, l := r.placed[e.Task], r.launches[e.Task]
	if l == nil || l.id != spec.TaskActivityID(e.Task, e.Generation, e.Launch) {
		return
	}
	delete(r.launches, e.Task)
	if e.Exit == nil {
		e.GivenUp = r.absent[h.Queue]
		r.unsettled[h.Queue] = true
	}
	if e.Exit != nil && e.Exit.Cause == spec.CauseHostLost {
		r.lost[h.Queue] = true
	}
	switch {
	case e.GivenUp:
		r.absent[h.Queue] = true
	case e.Exit != nil: // reported by the host itself
		delete(r.absent, h.Queue)
	}
	e.Host = h.Name
	e.Await = e.Exit != nil && e.Exit.Cause.ByItself() && e.Exit.LostPeer()
	r.step(ctx, e)
}

// stop cancels activities. The host then stops the processes with their grace. The server takes
// some milliseconds to deliver a cancellation, so the only host of a local queue is also asked
// directly.
func (r *clusterRun) stop(ctx workflow.Context, a lifecycle.Stop) {
	for _, name := range a.Tasks {
		if l, ok := r.launches[name]; ok {
			l.cancel()
		}
	}
	if spec.IsLocalQueue(r.queue) {
		here := workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: hereTakes, RetryPolicy: once()})
		workflow.ExecuteLocalActivity(here, hostapi.Name(hostapi.Host.StopTasks), tasksInput(r.calls.group(), a.Tasks))
	}
}

// Carrier carries out launches on one host: it starts their RunTask activities, in the run's
// workflow or a group's, and interprets the results.
type Carrier struct {
	Host  string `json:"host"`
	Queue string `json:"queue"`
	// StopAfter is how long a host without contact keeps its processes running. Once the host has
	// been silent for GivenUp, none of them can be alive. 0 means no limit.
	StopAfter time.Duration `json:"stop_after,omitempty"`
	GivenUp   time.Duration `json:"given_up,omitempty"`
	// Bounds are the run's two bounds. Others holds the queues of the witnesses, if any.
	Bounds *hostapi.Bounds `json:"bounds,omitempty"`
	Others []string        `json:"others,omitempty"`
	// Crowd reports whether the tasks send heartbeats less often.
	Crowd bool `json:"crowd,omitempty"`

	// asking is set in a group.
	asking *asking
	// here reports whether RunTask is first tried within the workflow task.
	here bool
}

func (pl *placer) carrierOn(h *host) Carrier {
	if b := pl.bounds; b != nil {
		return Carrier{Host: h.Name, Queue: h.Queue, StopAfter: b.Short, GivenUp: lease.Bounds(*b).Passed(), Bounds: b, Others: list.Of(pl.witnessesOf(h), func(o *host) string { return o.Queue })}
	}
	return Carrier{Host: h.Name, Queue: h.Queue, StopAfter: pl.spec.StopAfter(len(pl.hosts)), GivenUp: pl.givenUp(len(pl.hosts))}
}

// runTask carries out a launch. offered receives the ID of each activity except the first.
func (c Carrier) runTask(ctx workflow.Context, in hostapi.RunTaskInput, offered func(id string)) future[spec.Exit] {
	summary := fmt.Sprintf("%s on %s", markdown.Name(in.Task), markdown.Name(c.Host))
	if in.Generation > 0 {
		summary += fmt.Sprintf(", generation %d", in.Generation)
	}
	if in.Launch > 0 {
		summary += fmt.Sprintf(", start %d", in.Launch+1)
	}
	if c.Bounds != nil {
		answer, settable := workflow.NewFuture(ctx)
		workflow.Go(ctx, func(ctx workflow.Context) { settable.Set(c.offers(ctx, in, summary, offered)) })
		return future[spec.Exit]{answer}
	}
	ctx = workflow.WithActivityOptions(ctx, c.options(spec.TaskActivityID(in.Task, in.Generation, in.Launch), summary))
	if c.here {
		return runTaskHere(ctx, in)
	}
	return call(ctx, hostapi.Host.RunTask, in)
}

// maxHere limits the tasks that are first tried within the workflow task, each of which adds an
// event.
const maxHere = 100

// startsHere reports whether a launch is first tried within the run's first workflow task. Updates
// and timers wait for the workflow task, so it must not contain a restart or a timeout.
func (r *clusterRun) startsHere(ctx workflow.Context, a lifecycle.Launch) bool {
	const first = 3 // events until the first workflow task starts
	return spec.IsLocalQueue(r.queue) && workflow.GetInfo(ctx).GetCurrentHistoryLength() <= first && r.execution == 0 &&
		a.Generation == 0 && len(r.sized.TaskList()) <= maxHere && !r.spec.RestartsTasks() &&
		r.spec.Timeout == nil && r.placer.spec.StopAfter(1) == 0
}

// runTaskHere first runs the task within the workflow task, which RunTask soon leaves unless the
// process exits. A short run then costs the server a single workflow task. An activity adopts the
// process afterwards. In the meantime, StopTasks takes the place of a cancellation.
func runTaskHere(ctx workflow.Context, in hostapi.RunTaskInput) future[spec.Exit] {
	answer, settable := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		free, _ := workflow.NewDisconnectedContext(ctx)
		here := workflow.WithLocalActivityOptions(free, workflow.LocalActivityOptions{ScheduleToCloseTimeout: hereTakes, RetryPolicy: once()})
		out, err := future[spec.Exit]{workflow.ExecuteLocalActivity(here, hostapi.Name(hostapi.Host.RunTask), in)}.get(free)
		if err != nil && ctx.Err() == nil {
			in.Offer++ // newer than the attempt here
			out, err = call(ctx, hostapi.Host.RunTask, in).get(free)
		}
		if err != nil && ctx.Err() != nil {
			// StopTasks may have come between two attempts, and the server does not receive an
			// activity that is canceled in the same workflow task.
			in.Offer++
			in.Stop = true
			out, err = call(free, hostapi.Host.RunTask, in).get(free)
		}
		settable.Set(out, err)
	})
	return future[spec.Exit]{answer}
}

// noteHeard records when the server could last have answered a launch's host, given the launch's
// err.
func (r *clusterRun) noteHeard(ctx workflow.Context, c Carrier, err error) {
	if c.Bounds == nil {
		return
	}
	now := workflow.Now(ctx)
	heard := c.heard(now, err)
	if last := r.heard[c.Queue]; heard.Before(now) && last.After(heard) {
		heard = last // another task on the host had contact later
	}
	r.heard[c.Queue] = heard
}

// heard returns when the server could last have answered for a launch that ended at now with err.
func (c Carrier) heard(now time.Time, err error) time.Time {
	if silent, ok := errors.AsType[*silentError](err); ok {
		return silent.heard
	}
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); ok && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_HEARTBEAT {
		return now.Add(-c.options("", "").HeartbeatTimeout)
	}
	return now
}

// endOf derives the process's exit from the result of its activity. If there is no exit, the
// activity was canceled before a process ran or between a failure and the restart. Release then
// reports the exit.
func (c Carrier) endOf(in hostapi.RunTaskInput, exit spec.Exit, err error) lifecycle.TaskEnded {
	end := lifecycle.TaskEnded{Task: in.Task, Generation: in.Generation, Launch: in.Launch}
	var timeout *temporal.TimeoutError
	switch {
	case err == nil:
		end.Exit = &exit
	case errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
		end.GivenUp = true
		end.Exit = &spec.Exit{
			Restart: lastNumber(err), ExitCode: -1, Cause: spec.CauseHostLost,
			Message: fmt.Sprintf("host %s did not return within %s", c.Host, spec.Duration(c.GivenUp.Round(time.Second))),
		}
	}
	return end
}

// lastNumber returns the last process number that a lost host sent in a heartbeat, or 0.
func lastNumber(err error) int {
	if silent, ok := errors.AsType[*silentError](err); ok {
		return silent.number
	}
	var beat spec.Heartbeat
	if timeout, ok := errors.AsType[*temporal.TimeoutError](err); !ok || !timeout.HasLastHeartbeatDetails() || timeout.LastHeartbeatDetails(&beat) != nil {
		return 0
	}
	return beat.Restarts
}
