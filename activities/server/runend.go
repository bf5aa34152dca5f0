package server

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// endEvery is the time between looks at a run that another waits for.
var endEvery = retry.Backoff{First: 250 * time.Millisecond, Most: 2 * time.Second}

// RunEnd is an activity that waits for the end of a run, and returns how it has ended.
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

// runEnd looks at a run once.
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
	switch info.GetStatus() {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		out.End = spec.EndedWell
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		out.End, err = s.howFailed(ctx, in.Run, info.GetExecution().GetRunId())
	default:
		out.End = spec.EndedBadly
	}
	return out, err
}

// howFailed distinguishes runs that were skipped from others that failed.
func (s *Server) howFailed(ctx context.Context, workflowID, execution string) (spec.RunEnd, error) {
	c, err := s.connected()
	if err != nil {
		return "", err
	}
	err = c.GetWorkflow(ctx, workflowID, execution).Get(ctx, nil)
	var ended *temporal.WorkflowExecutionError
	var failed *temporal.ApplicationError
	switch {
	case !errors.As(err, &ended):
		return "", err // the server did not answer
	case errors.As(err, &failed) && failed.Type() == spec.ErrSkipped:
		return spec.EndedSkipped, nil
	}
	return spec.EndedBadly, nil
}
