package unexecuted

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/internal/temporalapi"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// untakenFor is how long a run's workflow task waits before its queue is checked for workers. A
// worker takes a task within milliseconds.
const untakenFor = 3 * time.Second

var looks = retry.Backoff{First: 5 * time.Millisecond, Most: 250 * time.Millisecond}

// Is reports whether no worker is executing an open run's workflow. It waits until a worker has
// processed the last workflow task, which takes milliseconds, or until it is certain that there
// is no worker, which takes a few seconds. It returns a [*starter.StuckError] if ctx is done
// before either, for example because the workflow keeps failing.
func Is(ctx context.Context, r *starter.Run) (bool, error) { return look(ctx, r, false) }

// Await waits until no worker is executing the run, and then returns nil. It returns an error if
// ctx is done or the run has ended.
func Await(ctx context.Context, r *starter.Run) error {
	_, err := look(ctx, r, true)
	return err
}

func look(ctx context.Context, r *starter.Run, wait bool) (bool, error) {
	var lies lyingTask
	for again := looks; ; {
		d, err := r.Describe(ctx)
		switch {
		case err != nil:
			return false, err
		case d.GetWorkflowExecutionInfo().GetCloseTime() != nil:
			if wait {
				return false, &starter.EndedError{RunID: r.ID}
			}
			return false, nil
		case workflowstatus.IsPaused(d.GetWorkflowExecutionInfo().GetStatus()):
			return false, &starter.StuckError{RunID: r.ID, Paused: true}
		}
		lies.look(time.Now(), d)
		if lies.taken && !wait {
			return false, nil
		}
		if lies.untaken(time.Now()) {
			polled, err := temporalapi.PolledSince(ctx, r.Client(), d.GetWorkflowExecutionInfo().GetTaskQueue(), lies.scheduled)
			if err == nil && !polled {
				return true, nil
			}
		}
		if err := again.Sleep(ctx); err != nil {
			if wait {
				return false, err
			}
			return false, &starter.StuckError{RunID: r.ID, Attempt: lies.attempt}
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

// HasBegun reports whether the run's workflow was ever executed.
func HasBegun(ctx context.Context, r *starter.Run) (bool, error) {
	events := r.Client().GetWorkflowHistory(ctx, r.ID, r.ExecutionID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return false, err
		}
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return true, nil
		}
	}
	return false, nil
}

// End ends a run that no worker is executing, with its closures and, if no other run uses it, its
// fleet. Hosts stop the run's remaining processes immediately, or when they return.
func End(ctx context.Context, r *starter.Run, reason string) error {
	d, err := r.Describe(ctx)
	if err != nil {
		return err
	}
	info := d.GetWorkflowExecutionInfo()
	if info.GetCloseTime() == nil {
		if err := r.Terminate(ctx, reason); err != nil {
			return err
		}
	}
	if queue := info.GetTaskQueue(); spec.IsAgentsQueue(queue) {
		if err := EndFleet(ctx, r.Client(), queue, reason); err != nil {
			return fmt.Errorf("close the queue of run %s: %w", r.ID, err)
		}
	}
	// No worker is left to close the queue of closures in order.
	return terminate(ctx, r.Client(), closure.QueueID(r.ID, cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId())), reason)
}

// EndFleet ends a queue's fleet that has lost its hosts.
func EndFleet(ctx context.Context, c client.Client, queue, reason string) error {
	return terminate(ctx, c, spec.FleetID(queue), reason)
}

// terminate terminates a workflow, if it is open.
func terminate(ctx context.Context, c client.Client, workflow, reason string) error {
	err := c.TerminateWorkflow(ctx, workflow, "", reason)
	if servererror.IsNotFound(err) {
		return nil
	}
	return err
}
