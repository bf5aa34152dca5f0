package closure

// QueueStatus is the answer of [QueryQueue].
type QueueStatus struct {
	State  QueueState  `json:"state"`
	Error  *Error      `json:"error,omitempty"`
	Counts QueueCounts `json:"counts"`
	// Workers lists the serving tasks, sorted.
	Workers []WorkerStatus `json:"workers"`
}

// QueueState is a queue's state.
type QueueState string

// The values of [QueueState].
const (
	QueueOpen     QueueState = "open"
	QueueFailed   QueueState = "failed"   // the next schedule, join or done raises
	QueueDraining QueueState = "draining" // a request waits until nothing executes
	QueueEnded    QueueState = "ended"    // the run has finished
)

// QueueCounts counts closures.
type QueueCounts struct {
	Scheduled uint64 `json:"scheduled"`
	Queued    int    `json:"queued"`
	// Executing counts the closures in batches. Most of them are being executed.
	Executing int    `json:"executing"`
	Finished  uint64 `json:"finished"` // closures that returned a value
	Failed    uint64 `json:"failed"`
	Cancelled uint64 `json:"cancelled"`
	// Lost counts the calls lost with their process or host.
	Lost  uint64 `json:"lost"`
	Bytes int    `json:"bytes"` // total size of the queued closures
}

// WorkerStatus is one serving task.
type WorkerStatus struct {
	Task  string `json:"task"`
	Host  string `json:"host"`
	Slots int    `json:"slots"`
}

// QueueResult is the result of a queue's workflow.
type QueueResult struct {
	Counts QueueCounts `json:"counts"`
}
