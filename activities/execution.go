package activities

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// A run whose history gets long goes on in another execution of its workflow, and takes
// its tasks along. Hosts know it by the execution in which it began, and find the one
// here that has it now.

type describer interface {
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
}

// describeRun tells about the execution that goes on with the run which began with that
// one, or has ended it.
func describeRun(ctx context.Context, s describer, workflowID, began string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	// The last comes first: the server may have forgotten the others.
	last, err := s.DescribeWorkflowExecution(ctx, workflowID, "")
	if err != nil {
		return nil, err
	}
	info := last.GetWorkflowExecutionInfo()
	if began == info.GetFirstRunId() || began == info.GetExecution().GetRunId() {
		return last, nil
	}
	d, err := s.DescribeWorkflowExecution(ctx, workflowID, began)
	if err != nil {
		return nil, err
	}
	then := d.GetWorkflowExecutionInfo()
	if then.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW && then.GetFirstRunId() == info.GetFirstRunId() {
		return last, nil // a host of an earlier version had given the run back in between
	}
	return d, nil
}

// takenOver is the shortest history of an execution that has taken over the tasks of a run,
// which it does with its first workflow task: it was started, and the task was scheduled,
// started and completed.
const takenOver = 4

// takingOver: the execution goes on with a run, and may not have got so far as to take
// over its tasks. The server may put its first workflow task off for a second.
func takingOver(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
	info := d.GetWorkflowExecutionInfo()
	first := info.GetFirstRunId()
	return first != "" && first != info.GetExecution().GetRunId() && (d.GetPendingWorkflowTask() != nil || info.GetHistoryLength() < takenOver)
}
