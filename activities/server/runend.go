package server

import (
	"context"
	"errors"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// endEvery is the interval between checks of a run that is awaited.
var endEvery = retry.Backoff{First: 250 * time.Millisecond, Most: 2 * time.Second}

// RunEnd is an activity that waits for a run to finish, and returns how it ended.
func (s *Server) RunEnd(ctx context.Context, in spec.RunEndInput) (out spec.RunEndOutput, err error) {
	if in.Execution == "" {
		return s.runEnd(ctx, in)
	}
	open := temporal.NewApplicationErrorWithOptions("run "+in.Run+" has not ended", "Unchanged",
		temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
	err = watch(ctx, endEvery, open, func(ctx context.Context) (bool, error) {
		out, err = s.runEnd(ctx, in)
		return out.End != "", err
	})
	return out, err
}

// runEnd checks a run once.
func (s *Server) runEnd(ctx context.Context, in spec.RunEndInput) (out spec.RunEndOutput, err error) {
	d, err := s.DescribeRun(ctx, in.Run, in.Execution)
	info := d.GetWorkflowExecutionInfo()
	out.Execution = info.GetFirstRunId()
	switch {
	case servererror.IsNotFound(err) && in.Execution == "":
		return out, nil
	case servererror.IsNotFound(err):
		return spec.RunEndOutput{Execution: in.Execution, End: spec.EndedUnknown}, nil
	case err != nil:
		return out, err
	}
	switch status := info.GetStatus(); {
	case workflowstatus.Continues(status):
	case status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		out.End = spec.EndedWell
	default:
		result, err := s.result(ctx, info.GetExecution())
		if err != nil {
			return out, err
		}
		if out.End = spec.EndedBadly; result.ErrorType == spec.ErrSkipped {
			out.End = spec.EndedSkipped
		}
	}
	return out, nil
}

// result returns the result of a run that has ended, or a placeholder.
func (s *Server) result(ctx context.Context, e *commonpb.WorkflowExecution) (*spec.RunResult, error) {
	c, err := s.connected()
	if err != nil {
		return nil, err
	}
	result := &spec.RunResult{}
	err = c.GetWorkflow(ctx, e.GetWorkflowId(), e.GetRunId()).Get(ctx, result)
	var ended *temporal.WorkflowExecutionError
	switch {
	case errors.As(err, &ended):
		return runs.ResultOf(err), nil
	case err != nil:
		return nil, err // the server did not answer
	}
	return result, nil
}
