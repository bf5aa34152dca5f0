package queue

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

const (
	// forEver is longer than any lease is held.
	forEver = 10 * 365 * 24 * time.Hour
	// leaseSilence is the heartbeat timeout of a lease.
	leaseSilence = 10 * time.Second
	// checkSilence is the heartbeat timeout of the check whether the run has ended.
	checkSilence = 30 * time.Second
	// hostGoneAfter is the time in which a host worker must start a lease, or return to it.
	// After that other hosts call its closures.
	hostGoneAfter = 30 * time.Second
	// cancelGrace is the time in which a cancelled call must end before its process is
	// restarted.
	cancelGrace = 10 * time.Second
)

// lease leases closures to a host, and passes the result to the machine.
func (q *queue) lease(ctx workflow.Context, d rules.Dispatch) {
	q.open++
	lease := d.Lease
	lease.Queue, lease.Run = workflow.GetInfo(ctx).WorkflowExecution.ID, q.in.Run
	if len(lease.Cancelled) > 0 {
		lease.Grace = cancelGrace
	}
	f := workflow.ExecuteActivity(leasing(ctx, d), closure.ActivityRunClosures, lease)
	workflow.Go(ctx, func(ctx workflow.Context) {
		var out closure.LeaseResult
		err := f.Get(ctx, &out)
		q.open--
		if err != nil {
			q.log(ctx).Warn("a host failed to process calls", "host", d.Host, "closures", len(d.Closures), "error", err)
			var app *temporal.ApplicationError
			if errors.As(err, &app) && app.Type() == closure.ErrNotServed {
				q.machine.LeaseRefused(d.Number)
			} else {
				q.machine.LeaseLost(d.Number)
			}
		} else {
			q.machine.LeaseEnded(d.Number, out)
		}
		q.changed = true
	})
}

// leasing returns the options of RunClosures. A host worker that was restarted starts it
// again, any number of times, until hostGoneAfter.
func leasing(ctx workflow.Context, d rules.Dispatch) workflow.Context {
	summary := fmt.Sprintf("%d closures on %s", len(d.Closures), markdown.Name(d.Host))
	if len(d.Closures) == 1 {
		summary = fmt.Sprintf("%s on %s", markdown.Name(d.Closures[0].Function), markdown.Name(d.Host))
	}
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              d.TaskQueue,
		ScheduleToStartTimeout: hostGoneAfter,
		StartToCloseTimeout:    forEver,
		HeartbeatTimeout:       leaseSilence,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 1},
		Summary:                summary,
	})
}

// check starts the activity that ends the queue with its run. Usually the run ends its queue,
// but not if it is terminated.
func (q *queue) check(ctx workflow.Context) {
	f := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           spec.HostsQueue(workflow.GetInfo(ctx).TaskQueueName),
		StartToCloseTimeout: forEver,
		HeartbeatTimeout:    checkSilence,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
		Summary:             "check whether the run has ended",
	}), closure.ActivityClosuresCheck, closure.CheckInput{Run: q.in.Run})
	workflow.Go(ctx, func(ctx workflow.Context) {
		var out closure.CheckOutput
		if err := f.Get(ctx, &out); err != nil {
			q.log(ctx).Warn("it is no longer checked whether the run has ended", "error", err)
			return
		}
		q.machine.RunEnded(out.Over)
		q.changed = true
	})
}

// cancelOn sends a host a request to cancel closures. Their leases return the outcomes. If it
// fails, the machine repeats the request: nothing else ends a call that does not end by itself.
func (q *queue) cancelOn(ctx workflow.Context, c rules.CancelOn) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              c.Queue,
		StartToCloseTimeout:    10 * time.Second,
		ScheduleToCloseTimeout: hostGoneAfter,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1},
		Summary:                fmt.Sprintf("cancel %d closures on %s", len(c.Closures), markdown.Name(c.Host)),
	})
	f := workflow.ExecuteActivity(ctx, closure.ActivityCancelClosures, closure.CancelLease{
		Queue: workflow.GetInfo(ctx).WorkflowExecution.ID, Run: q.in.Run, Closures: c.Closures, Grace: cancelGrace,
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		if err := f.Get(ctx, nil); err != nil {
			q.log(ctx).Warn("closures could not be cancelled", "host", c.Host, "error", err)
			q.machine.CancelLost(c)
			q.changed = true
		}
	})
}

// releaseOn sends a host the IDs of dropped resources. If that fails, they are sent again with
// a lease, or after the host's next message.
func (q *queue) releaseOn(ctx workflow.Context, r rules.ReleaseOn) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              r.Queue,
		StartToCloseTimeout:    10 * time.Second,
		ScheduleToCloseTimeout: hostGoneAfter,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 1},
		Summary:                "release resources on " + markdown.Name(r.Host),
	})
	f := workflow.ExecuteActivity(ctx, closure.ActivityReleaseResources, closure.ReleasedResources{
		Queue: workflow.GetInfo(ctx).WorkflowExecution.ID, Run: q.in.Run, Released: r.Released,
	})
	workflow.Go(ctx, func(ctx workflow.Context) {
		err := f.Get(ctx, nil)
		if err != nil {
			q.log(ctx).Warn("a host could not be notified of released resources", "host", r.Host, "error", err)
		}
		q.machine.ReleaseEnded(r.Release, err == nil)
		q.changed = true
	})
}
