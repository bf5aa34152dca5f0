// Package workflowstatus interprets the status of workflow executions.
package workflowstatus

import enumspb "go.temporal.io/api/enums/v1"

const (
	// Open and Closed select executions in a query to the server. They also work on servers that do
	// not support pausing.
	Open   = "CloseTime IS NULL"
	Closed = "CloseTime IS NOT NULL"
)

// IsOpen reports whether an execution has not ended. A paused execution is open. Its workflow is
// not executed until it is unpaused, but its activities continue.
func IsOpen(s enumspb.WorkflowExecutionStatus) bool {
	return s == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || IsPaused(s)
}

// IsPaused reports whether an execution was paused, for example in Temporal's Web UI.
func IsPaused(s enumspb.WorkflowExecutionStatus) bool {
	return s == enumspb.WORKFLOW_EXECUTION_STATUS_PAUSED
}

// Continues reports whether an execution's workflow has not ended, because the execution is open or
// another execution follows it.
func Continues(s enumspb.WorkflowExecutionStatus) bool {
	return IsOpen(s) || s == enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW
}
