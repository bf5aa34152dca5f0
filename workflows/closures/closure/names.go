package closure

// Names on the wire, which are part of the contract as are the names of package spec.
const (
	// QueueType is the type of the workflow that is the queue of a run's closures; see
	// [QueueID].
	QueueType = "ClosureQueue"

	// QueryQueue asks a queue how it stands.
	QueryQueue = "queue"
	// SignalServing reports to a queue which tasks of a host serve.
	SignalServing = "serving"

	UpdateSchedule = "schedule"
	UpdateJoin     = "join"
	UpdateTake     = "take"

	// ActivityRunClosures makes the tasks of a host call closures.
	ActivityRunClosures = "RunClosures"
	// ErrQueueEnded is the type of the error of a request to a queue whose run has ended.
	ErrQueueEnded = "QueueEnded"

	// ActivityEndClosures ends the queue of a run that has ended.
	ActivityEndClosures = "EndClosures"
	// ActivityClosuresCheck finds out for a queue that its run has ended without ending the
	// queue.
	ActivityClosuresCheck = "ClosuresCheck"
)
