package server

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

var _ taskservices.Runs = (*Server)(nil)

// Update implements [taskservices.Runs]. It reaches the run's current execution. The server
// rejects it if the workflow ID now belongs to another run.
func (s *Server) Update(ctx context.Context, run runkey.Run, q taskservices.RunUpdate, answer any) error {
	c, err := s.connected()
	if err != nil {
		return err
	}
	handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		UpdateID: q.ID, WorkflowID: run.WorkflowID, FirstExecutionRunID: run.RunID,
		UpdateName: q.Name, Args: []any{q.Input},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, answer)
	}
	return refusal(err)
}

// status queries the described execution of a run.
func (s *Server) status(ctx context.Context, d *workflowservice.DescribeWorkflowExecutionResponse) (status spec.Status, err error) {
	c, err := s.connected()
	if err != nil {
		return status, err
	}
	e := d.GetWorkflowExecutionInfo().GetExecution()
	v, err := c.QueryWorkflow(ctx, e.GetWorkflowId(), e.GetRunId(), spec.QueryStatus)
	if err != nil {
		return status, err
	}
	return status, v.Get(&status)
}

// acceptBound limits the wait for a run to accept a request.
const acceptBound = time.Second

// CancelRun cancels the run with the given first execution because its owner is gone. If the run
// does not accept a request that says so, it is cancelled without a reason.
func (s *Server) CancelRun(ctx context.Context, workflowID, began string) error {
	c, err := s.connected()
	if err != nil {
		return err
	}
	asking, cancel := context.WithTimeout(ctx, acceptBound)
	defer cancel()
	_, err = c.UpdateWorkflow(asking, client.UpdateWorkflowOptions{
		WorkflowID: workflowID, FirstExecutionRunID: began, UpdateName: spec.UpdateRequestStop.Name,
		Args: []any{spec.StopRequest{Reason: "the command that it belonged to has exited"}}, WaitForStage: client.WorkflowUpdateStageAccepted,
	})
	if err == nil {
		return nil
	}
	return c.CancelWorkflowWithOptions(ctx, client.CancelWorkflowOptions{WorkflowID: workflowID, FirstExecutionRunID: began})
}

// AwaitRun returns when a run has ended, or ctx is done.
func (s *Server) AwaitRun(ctx context.Context, workflowID, began string) {
	if c, err := s.connected(); err == nil {
		_ = c.GetWorkflow(ctx, workflowID, began).Get(ctx, nil)
	}
}

// DescribeRun describes the current or last execution of the run with the given first execution. A
// run with a long history continues with its tasks in another execution of its workflow, but hosts
// identify the run by its first one.
func (s *Server) DescribeRun(ctx context.Context, workflowID, began string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	c, err := s.connected()
	if err != nil {
		return nil, err
	}
	// Ask for the last execution. The server may have forgotten earlier ones.
	last, err := c.DescribeWorkflowExecution(ctx, workflowID, "")
	if err != nil {
		return nil, err
	}
	info := last.GetWorkflowExecutionInfo()
	if began == info.GetFirstRunId() || began == info.GetExecution().GetRunId() {
		return last, nil
	}
	// The ID now belongs to another run.
	for {
		d, err := c.DescribeWorkflowExecution(ctx, workflowID, began)
		if err != nil || d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
			return d, err
		}
		end, err := c.GetWorkflowHistory(ctx, workflowID, began, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT).Next()
		if err != nil {
			return nil, err
		}
		next := end.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		if next == "" {
			return d, nil
		}
		began = next
	}
}

// refusal marks err as a refusal if a retry would not fix it.
func refusal(err error) error {
	var application *temporal.ApplicationError
	switch {
	case servererror.IsMoving(err):
		return err
	case errors.As(err, &application):
		return &taskservices.RefusedError{Message: application.Message()}
	case servererror.IsNotFound(err):
		return &taskservices.RefusedError{Message: "the run has ended"}
	case servererror.IsRefused(err):
		return &taskservices.RefusedError{Message: "the Temporal server refused it: " + err.Error()}
	}
	return err
}
