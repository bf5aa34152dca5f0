package closurequeue

import (
	"cmp"
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Left reports whether the queue is open.
func (c *Client) Left(ctx context.Context) (bool, error) {
	d, err := c.server.DescribeWorkflowExecution(ctx, c.id, "")
	if servererror.IsNotFound(err) {
		return false, nil
	}
	return err == nil && d.GetWorkflowExecutionInfo().GetCloseTime() == nil, err
}

// Over returns how the run has ended, in any of its executions, or an empty string while it is
// open. A run that continues in another execution has the same first execution.
func (c *Client) Over(ctx context.Context) (string, error) {
	id := c.run.WorkflowID
	d, err := c.server.DescribeWorkflowExecution(ctx, id, "")
	switch {
	case servererror.IsNotFound(err):
		return fmt.Sprintf("the server no longer has run %s", id), nil
	case err != nil:
		return "", err
	}
	info := d.GetWorkflowExecutionInfo()
	switch {
	case cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId()) != c.run.RunID:
		return fmt.Sprintf("run %s has ended, and another run now has that ID", id), nil
	case isOpen(info.GetStatus()):
		return "", nil
	case info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return fmt.Sprintf("run %s was terminated", id), nil
	}
	return fmt.Sprintf("run %s has ended", id), nil
}

// lookAgain is the interval between End's checks of a queue.
const lookAgain = 50 * time.Millisecond

// End notifies the queue, if it exists, that its run has ended, and waits until the queue has also
// ended.
func (c *Client) End(ctx context.Context, over string) error {
	switch err := c.server.SignalWorkflow(ctx, c.id, "", closure.SignalServing, closure.ServingMessage{Over: over}); {
	case servererror.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	for {
		// It does not matter how the queue ended.
		err := c.server.GetWorkflow(ctx, c.id, "").Get(ctx, nil)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if left, err := c.Left(ctx); err == nil && !left {
			return nil
		}
		_ = retry.Sleep(ctx, lookAgain)
	}
}
