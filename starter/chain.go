package starter

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
)

// A run may continue in another execution of its workflow when the history of one has become
// long. A handle names the run by the first execution; this file finds the latest.

// describe describes the latest execution of the run.
func (r *Run) describe(ctx context.Context) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	execution := r.latest()
	for {
		d, err := r.client.DescribeWorkflowExecution(ctx, r.ID, execution)
		if isNotFound(err) && execution != "" {
			// The server forgets executions that ended long ago; the last one of the
			// run knows the first.
			last, lastErr := r.client.DescribeWorkflowExecution(ctx, r.ID, "")
			if lastErr != nil || last.GetWorkflowExecutionInfo().GetFirstRunId() != r.ExecutionID {
				return nil, err
			}
			d, err = last, nil
			r.remember(last.GetWorkflowExecutionInfo().GetExecution().GetRunId())
		}
		if err != nil {
			return nil, err
		}
		info := d.GetWorkflowExecutionInfo()
		if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
			return d, nil
		}
		if execution, err = r.next(ctx, info.GetExecution().GetRunId()); err != nil {
			return nil, err
		}
		r.remember(execution)
	}
}

func (r *Run) remember(execution string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latestID = execution
}

// Queue returns the task queue of the run, and whether the run is open. Unlike [Run.Status], it
// asks only the server.
func (r *Run) Queue(ctx context.Context) (queue string, open bool, err error) {
	d, err := r.describe(ctx)
	if err != nil {
		return "", false, r.requestError(err)
	}
	info := d.GetWorkflowExecutionInfo()
	return info.GetTaskQueue(), info.GetCloseTime() == nil, nil
}

// latest returns the latest execution that is known.
func (r *Run) latest() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latestID != "" {
		return r.latestID
	}
	return r.ExecutionID
}

// next returns the execution as which another one continued.
func (r *Run) next(ctx context.Context, execution string) (string, error) {
	events := r.client.GetWorkflowHistory(ctx, r.ID, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return "", err
		}
		if a := event.GetWorkflowExecutionContinuedAsNewEventAttributes(); a != nil {
			return a.GetNewExecutionRunId(), nil
		}
	}
	return "", &NotFoundError{RunID: r.ID}
}

// request sends a request to the latest execution of the run. If the latest known one refuses
// it because it is closed, request looks for the next.
func (r *Run) request(ctx context.Context, do func(execution string) error) error {
	until := time.Now().Add(moveTimeout)
	for again := moving; ; {
		execution := r.latest()
		err := do(execution)
		switch {
		case isNotFound(err) && r.goesOnAfter(ctx, execution):
			continue
		case !servererror.IsMoving(err) || time.Now().After(until):
			return err
		}
		if again.Sleep(ctx) != nil {
			return err
		}
	}
}

// moving is the time between requests to a run that is about to go on in another
// execution, which it does within moveTimeout.
var moving = retry.Backoff{First: 20 * time.Millisecond, Most: 500 * time.Millisecond}

const moveTimeout = 30 * time.Second

// goesOnAfter reports whether the run has an execution after that one.
func (r *Run) goesOnAfter(ctx context.Context, execution string) bool {
	if execution == "" {
		return false
	}
	_, err := r.describe(ctx)
	return err == nil && r.latest() != execution
}

func isNotFound(err error) bool { return servererror.IsNotFound(err) }
