// Package workflowstatus says whether an execution of a workflow is open.
package workflowstatus

import enumspb "go.temporal.io/api/enums/v1"

const (
	// Open and Closed select executions in a query to the server. They also tell apart those of
	// servers that know no pause.
	Open   = "CloseTime IS NULL"
	Closed = "CloseTime IS NOT NULL"
)

// IsOpen reports whether an execution has not ended. One that is paused has not: nothing of its
// workflow is executed until it is unpaused, but its activities go on.
func IsOpen(s enumspb.WorkflowExecutionStatus) bool {
	return s == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || IsPaused(s)
}

// IsPaused reports whether somebody has paused an execution, for example in Temporal's Web UI.
func IsPaused(s enumspb.WorkflowExecutionStatus) bool {
	return s == enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED
}

// Continues reports whether the workflow of an execution has not ended: the execution is open, or
// another one follows it.
func Continues(s enumspb.WorkflowExecutionStatus) bool {
	return IsOpen(s) || s == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
}
