package starter

import (
	"context"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// untakenFor is how long a run's workflow task waits before its queue is checked for workers. A
// worker takes a task within milliseconds.
const untakenFor = 3 * time.Second

var looks = retry.Backoff{First: 5 * time.Millisecond, Most: 250 * time.Millisecond}

// Unexecuted reports whether no worker is executing an open run's workflow. It waits until a
// worker has processed the last workflow task, which takes milliseconds, or until it is certain
// that there is no worker, which takes a few seconds. It returns a [*StuckError] if ctx is done
// before either, for example because the workflow keeps failing.
func (r *Run) Unexecuted(ctx context.Context) (bool, error) { return r.unexecuted(ctx, false) }

// AwaitUnexecuted waits until no worker is executing the run, and then returns nil. It returns
// an error if ctx is done or the run has ended.
func (r *Run) AwaitUnexecuted(ctx context.Context) error {
	_, err := r.unexecuted(ctx, true)
	return err
}

func (r *Run) unexecuted(ctx context.Context, wait bool) (bool, error) {
	var lies lyingTask
	for again := looks; ; {
		d, err := r.describe(ctx)
		switch {
		case err != nil:
			return false, r.requestError(err)
		case d.GetWorkflowExecutionInfo().GetCloseTime() != nil:
			if wait {
				return false, &EndedError{RunID: r.ID}
			}
			return false, nil
		case workflowstatus.IsPaused(d.GetWorkflowExecutionInfo().GetStatus()):
			return false, &StuckError{RunID: r.ID, Paused: true}
		}
		lies.look(time.Now(), d)
		if lies.taken && !wait {
			return false, nil
		}
		if lies.untaken(time.Now()) {
			polled, err := polledSince(ctx, r.client, d.GetWorkflowExecutionInfo().GetTaskQueue(), lies.scheduled)
			if err == nil && !polled {
				return true, nil
			}
		}
		if err := again.Sleep(ctx); err != nil {
			if wait {
				return false, err
			}
			return false, &StuckError{RunID: r.ID, Attempt: lies.attempt}
		}
	}
}

// lyingTask is a run's untaken workflow task, as observed over several checks.
type lyingTask struct {
	scheduled time.Time // by the server's clock
	since     time.Time // by this host's clock
	attempt   int
	changes   int
	waits     bool
	taken     bool
}

// look records the task's current state.
func (l *lyingTask) look(now time.Time, d *workflowservice.DescribeWorkflowExecutionResponse) {
	t := d.GetPendingWorkflowTask()
	if t == nil {
		*l = lyingTask{taken: true}
		return
	}
	l.attempt, l.waits = int(t.GetAttempt()), t.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
	if at := t.GetScheduledTime().AsTime(); !at.Equal(l.scheduled) {
		if !l.scheduled.IsZero() && l.attempt <= 1 {
			l.changes++
		}
		l.scheduled, l.since = at, now
	}
	// The server itself replaces, once, a task that was reserved for a host with the workflow in
	// its cache. Any other new task means that a worker has completed an earlier one.
	l.taken = l.changes > 1
}

func (l *lyingTask) untaken(now time.Time) bool { return l.waits && now.Sub(l.since) >= untakenFor }

// polledSince reports whether a worker has polled the queue for workflow tasks since a time on
// the server's clock. A host worker polls again after each task, and receives waiting tasks. So
// a host worker without a poll since that time is gone, although the server lists it for some
// minutes.
func polledSince(ctx context.Context, c client.Client, queue string, since time.Time) (bool, error) {
	d, err := c.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(d.GetPollers(), func(p *taskqueuepb.PollerInfo) bool {
		return p.GetLastAccessTime().AsTime().After(since)
	}), nil
}

// Begun reports whether the run's workflow was ever executed.
func (r *Run) Begun(ctx context.Context) (bool, error) {
	events := r.client.GetWorkflowHistory(ctx, r.ID, r.ExecutionID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return false, r.requestError(err)
		}
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return true, nil
		}
	}
	return false, nil
}

// EndUnexecuted ends a run that no worker is executing, with its closures and, if no other run
// uses it, its fleet. Hosts stop the run's remaining processes immediately, or when they return.
func (r *Run) EndUnexecuted(ctx context.Context, reason string) error {
	queue, open, err := r.Queue(ctx)
	if err != nil {
		return err
	}
	if open {
		if err := r.Terminate(ctx, reason); err != nil {
			return err
		}
	}
	if spec.IsAgentsQueue(queue) {
		if err := GetFleet(r.client, queue).Terminate(ctx, reason); err != nil {
			return fmt.Errorf("end the queue of run %s: %w", r.ID, err)
		}
	}
	return r.terminateClosures(ctx, reason)
}
