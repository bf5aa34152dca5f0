package server

import (
	"cmp"
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ClosuresCheck is an activity that returns when the run has ended. A queue of closures uses it
// for runs that end without a message to the queue, because the run was terminated, its hosts
// are gone, or none of its tasks ever served.
func (s *Queues) ClosuresCheck(ctx context.Context, in closure.CheckInput) (out closure.CheckOutput, err error) {
	open := temporal.NewApplicationErrorWithOptions("the run is open", "RunOpen",
		temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
	err = watch(ctx, watchEvery, open, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, overTimeout)
		defer cancel()
		var err error
		out.Over, err = s.Over(ctx, in.Run)
		return out.Over != "", err
	})
	return out, err
}

// overTimeout bounds the request to the server.
const overTimeout = 10 * time.Second

// Over implements [taskservices.Queues]. A run that continues in another execution has the
// same first execution.
func (s *Queues) Over(ctx context.Context, run spec.RunRef) (string, error) {
	c, err := s.server.connected()
	if err != nil {
		return "", err
	}
	d, err := c.DescribeWorkflowExecution(ctx, run.WorkflowID, "")
	switch {
	case servererror.IsNotFound(err):
		return fmt.Sprintf("the server no longer knows run %s", run.WorkflowID), nil
	case err != nil:
		return "", err
	}
	info := d.GetWorkflowExecutionInfo()
	if cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId()) != run.RunID {
		return fmt.Sprintf("run %s has ended, and there is another run with that ID", run.WorkflowID), nil
	}
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return "", nil
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return fmt.Sprintf("run %s was terminated", run.WorkflowID), nil
	}
	return fmt.Sprintf("run %s has ended", run.WorkflowID), nil
}

// Left implements [taskservices.Queues].
func (s *Queues) Left(ctx context.Context, run spec.RunRef) (bool, error) {
	c, err := s.server.connected()
	if err != nil {
		return false, err
	}
	d, err := c.DescribeWorkflowExecution(ctx, closure.QueueID(run.WorkflowID, run.RunID), "")
	if servererror.IsNotFound(err) {
		return false, nil
	}
	return err == nil && d.GetWorkflowExecutionInfo().GetCloseTime() == nil, err
}
