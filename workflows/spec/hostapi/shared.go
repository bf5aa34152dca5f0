package hostapi

// Shared refers to the execution of a workflow whose input is a value for many hosts. A run with
// many hosts sends each host this reference instead of the value.
type Shared struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}
