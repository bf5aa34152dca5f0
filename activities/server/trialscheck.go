package server

import (
	"context"
	"fmt"
	"strings"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// TrialsCheck is an activity that returns which of the trials that an earlier execution of the
// sweep started have ended. Until at least one has ended, it returns a retryable error, because
// retries do not add to the history.
func (s *Server) TrialsCheck(ctx context.Context, in sweep.CheckInput) (out sweep.CheckOutput, err error) {
	running, err := s.runningTrials(ctx, in.Sweep)
	if err != nil {
		return out, err
	}
	for _, t := range in.Trials {
		if running[spec.TrialID(in.Sweep, t.Trial)] {
			continue
		}
		// Check, because the server's list lags behind.
		d, err := s.DescribeRun(ctx, spec.TrialID(in.Sweep, t.Trial), t.RunID)
		var result *spec.RunResult
		switch status := d.GetWorkflowExecutionInfo().GetStatus(); {
		case servererror.IsNotFound(err): // the run was removed
		case err != nil:
			return out, err
		case workflowstatus.Continues(status):
			continue
		default:
			if result, err = s.result(ctx, d.GetWorkflowExecutionInfo().GetExecution()); err != nil {
				return out, err
			}
		}
		out.Ended = append(out.Ended, sweep.EndedTrial{Trial: t.Trial, State: sweep.StateOfResult(result).String()})
	}
	if len(out.Ended) == 0 {
		return out, temporal.NewApplicationErrorWithOptions("all of them are still running", "Unchanged",
			temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign})
	}
	return out, nil
}

// runningTrials returns the run IDs of the trials that the server lists as running, at most
// [sweep.MaxAtOnce].
func (s *Server) runningTrials(ctx context.Context, id string) (map[string]bool, error) {
	c, err := s.connected()
	if err != nil {
		return nil, err
	}
	request := &workflowservice.ListWorkflowExecutionsRequest{PageSize: sweep.MaxAtOnce, Query: fmt.Sprintf(
		"WorkflowType = '%s' AND ExecutionStatus = 'Running' AND WorkflowId STARTS_WITH '%s.'",
		spec.TrialWorkflowType, strings.ReplaceAll(id, "'", `\'`))}
	running := map[string]bool{}
	for {
		list, err := c.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the trials of sweep %s: %w", id, err)
		}
		for _, e := range list.GetExecutions() {
			run := e.GetExecution().GetWorkflowId()
			if of, _, ok := spec.SplitTrialID(run); ok && of == id {
				running[run] = true
			}
		}
		if request.NextPageToken = list.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return running, nil
		}
	}
}
