package closure

// Names on the wire. Like the names in package spec, they are part of the contract.
const (
	// QueueType is the workflow type of a run's closure queue; see [QueueID].
	QueueType = "ClosureQueue"

	// QueryQueue returns a queue's status.
	QueryQueue = "queue"
	// SignalServing reports to a queue which of a host's tasks serve.
	SignalServing = "serving"

	// UpdateSync schedules closures, waits for them and takes their outcomes.
	UpdateSync = "sync"

	// ActivityRunClosures makes a host's tasks call closures.
	ActivityRunClosures = "RunClosures"
	// ErrQueueEnded is the error type of requests to a closed queue.
	ErrQueueEnded = "QueueEnded"

	// ActivityEndClosures closes a finished run's queue.
	ActivityEndClosures = "EndClosures"
	// ActivityClosuresCheck lets a queue detect that its run has finished without closing it.
	ActivityClosuresCheck = "ClosuresCheck"
)
