package closure

// QueueStatus is the answer of [QueryQueue].
type QueueStatus struct {
	State  QueueState  `json:"state"`
	Error  *Error      `json:"error,omitempty"`
	Counts QueueCounts `json:"counts"`
	// Workers are the tasks that serve, sorted.
	Workers []WorkerStatus `json:"workers"`
	// Lists is used in JSON only; see [ServingTask.List].
	Lists [][]string `json:"lists,omitempty"`
	// Executions are the executions of the workflow, the oldest first, with the IDs that ended
	// in each.
	Executions []QueueExecution `json:"executions"`
}

// QueueState is the state of a queue.
type QueueState string

// The values of [QueueState].
const (
	QueueOpen     QueueState = "open"
	QueueFailed   QueueState = "failed"   // the next schedule, join or done raises
	QueueDraining QueueState = "draining" // and waits until nothing executes
	QueueEnded    QueueState = "ended"    // the run has ended
)

// QueueCounts are numbers of closures.
type QueueCounts struct {
	Scheduled uint64 `json:"scheduled"`
	Queued    int    `json:"queued"`
	// Executing is the number of closures that hosts hold, most of which are being called.
	Executing int    `json:"executing"`
	Finished  uint64 `json:"finished"` // with a value
	Failed    uint64 `json:"failed"`
	Cancelled uint64 `json:"cancelled"`
	// Calls is the number of known calls of closures.
	Calls    uint64 `json:"calls"`
	PutBack  uint64 `json:"put_back"`
	Bytes    int    `json:"bytes"` // of queued and executing ones
	Resource int    `json:"resources"`
}

// WorkerStatus is one serving task.
type WorkerStatus struct {
	Task      string   `json:"task"`
	Host      string   `json:"host"`
	Serving   bool     `json:"serving"`
	Slots     int      `json:"slots"`
	Functions []string `json:"functions,omitempty"`
	List      int      `json:"list,omitempty"` // as in [ServingTask]
}

// QueueExecution is one execution of a queue's workflow.
type QueueExecution struct {
	RunID string `json:"run_id"`
	// First and Last bound the IDs of the closures that ended in it. They are 0 if none has.
	First uint64 `json:"first,omitempty"`
	Last  uint64 `json:"last,omitempty"`
}

// QueueResult is the result of a queue's workflow.
type QueueResult struct {
	Counts     QueueCounts      `json:"counts"`
	Executions []QueueExecution `json:"executions"`
}
