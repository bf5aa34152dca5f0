package runkey

import "fmt"

// Run identifies one execution of a run. Runs in different namespaces, and later executions with
// the same workflow ID, do not share anything.
type Run struct {
	Namespace  string `json:"namespace"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// Task identifies a task in one generation of a run.
type Task struct {
	Run        Run    `json:"run"`
	Generation int    `json:"generation"`
	Task       string `json:"task"`
}

// String returns the task in a form for logs.
func (t Task) String() string {
	return fmt.Sprintf("%s/%s/%d/%s", t.Run.WorkflowID, t.Run.RunID, t.Generation, t.Task)
}
