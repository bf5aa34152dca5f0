package starter

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/starter/internal/temporalapi"
)

const (
	// A workflow task is stuck if no worker takes it within stuckAfter or it fails stuckAttempts
	// times.
	stuckAfter    = 10 * time.Second
	stuckAttempts = 4
	// askEvery is the interval between checks that a worker polls the queue of a run without a
	// workflow task. pollTakes is longer than a worker's polling interval.
	askEvery  = 10 * time.Second
	pollTakes = 90 * time.Second
)

// looker checks a run repeatedly while the caller waits for the run to finish.
type looker struct {
	run   *Run
	asked time.Time // when a worker was last known to execute the run
	stuck *StuckError
}

// look checks the run. It returns a [*StuckError] if the run is stuck, or another error if the
// server does not answer. If the server does not know the run, look reports it as closed, and
// the long poll returns the error.
func (l *looker) look(ctx context.Context) (closed bool, err error) {
	r := l.run
	d, err := r.describe(ctx)
	switch {
	case isNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	case d.GetWorkflowExecutionInfo().GetCloseTime() != nil:
		return true, nil
	case workflowstatus.IsPaused(d.GetWorkflowExecutionInfo().GetStatus()):
		return false, &StuckError{RunID: r.ID, Paused: true}
	}
	t := d.GetPendingWorkflowTask()
	if t == nil {
		return false, l.attended(ctx, d)
	}
	lies := t.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED && time.Since(t.GetScheduledTime().AsTime()) > stuckAfter
	if lies || t.GetAttempt() >= stuckAttempts {
		return false, &StuckError{RunID: r.ID, Attempt: int(t.GetAttempt())}
	}
	return false, nil
}

// attended returns a [*StuckError] if no worker would take the run's next workflow task. The
// host worker may have gone while the run waits for a host. The query allows for clock skew.
func (l *looker) attended(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse) error {
	if l.stuck == nil && time.Since(l.asked) < askEvery {
		return nil
	}
	l.asked, l.stuck = time.Now(), nil
	polled, err := temporalapi.PolledSince(ctx, l.run.client, d.GetWorkflowExecutionInfo().GetTaskQueue(), time.Now().Add(-pollTakes))
	if err != nil || polled {
		return nil //nolint:nilerr // nothing is known
	}
	if _, err := l.run.query(ctx); err == nil || ctx.Err() != nil {
		return nil //nolint:nilerr // somebody answers, or there is no time to know
	}
	l.stuck = &StuckError{RunID: l.run.ID, Attempt: 1}
	return l.stuck
}
