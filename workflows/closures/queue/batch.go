package queue

import (
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
	// forEver is longer than any batch takes.
	forEver = 10 * 365 * 24 * time.Hour
	// batchSilence is the heartbeat timeout of a batch. A host that is silent for longer counts as
	// lost.
	batchSilence = 10 * time.Second
	// checkSilence is the heartbeat timeout of [closure.ActivityClosuresCheck].
	checkSilence = 30 * time.Second
	// hostGoneAfter limits how long a certain host may take to accept a batch.
	hostGoneAfter = 30 * time.Second
	// cancelGrace limits how long a cancelled call may continue before the calling process is
	// restarted.
	cancelGrace = 10 * time.Second
)

// batch starts a batch's activity, and passes the result to the machine. The server gives a lost
// host's batch to another host, any number of times. The result of a cancelled batch reports the
// state of its closures.
func (q *queue) batch(ctx workflow.Context, b *rules.Batch) {
	in := q.machine.Input(b)
	in.Run = q.in.Run
	if b.Cancelled {
		in.Grace = cancelGrace
	}
	o := workflow.ActivityOptions{
		TaskQueue:           closure.TaskQueue(workflow.GetInfo(ctx).WorkflowExecution.ID),
		StartToCloseTimeout: forEver,
		HeartbeatTimeout:    batchSilence,
		WaitForCancellation: true,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 1},
		Summary:             fmt.Sprintf("%d closures", len(b.Items)),
	}
	if b.Queue != "" {
		o.TaskQueue, o.ScheduleToStartTimeout = b.Queue, hostGoneAfter
	}
	if len(b.Items) == 1 {
		o.Summary = markdown.Name(b.Items[0].Function)
	}
	ctx, cancel := workflow.WithCancel(workflow.WithActivityOptions(ctx, o))
	q.cancels[b.Number] = cancel
	f := workflow.ExecuteActivity(ctx, closure.ActivityRunClosures, in)
	workflow.Go(ctx, func(ctx workflow.Context) {
		var out closure.BatchResult
		err := f.Get(ctx, &out)
		delete(q.cancels, b.Number)
		q.machine.Now(workflow.Now(ctx))
		if err == nil {
			q.machine.BatchEnded(b.Number, out)
		} else {
			if !temporal.IsCanceledError(err) {
				q.log(ctx).Warn("a batch of calls has failed", "queue", b.Queue, "closures", len(b.Items), "error", err)
			}
			q.machine.BatchFailed(b.Number)
		}
		q.changed = true
	})
}

// check starts the activity that closes the queue if its run was terminated. Otherwise the run
// closes the queue itself.
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
			q.log(ctx).Warn("can no longer check whether the run has ended", "error", err)
			return
		}
		q.machine.RunEnded(out.Over)
		q.changed = true
	})
}
