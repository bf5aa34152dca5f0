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
	UpdateDone     = "done"
	// UpdateWithdraw takes back a join or a done whose client has stopped waiting.
	UpdateWithdraw       = "withdraw"
	UpdateCreateResource = "create-resource"
	// UpdateReleaseResources releases per-worker resources.
	UpdateReleaseResources = "release-resources"
	UpdateCancelClosures   = "cancel-closures"

	// ActivityRunClosures makes the tasks of a host call closures, ActivityCancelClosures takes
	// closures back, and ActivityReleaseResources drops the objects that the tasks have built
	// for them.
	ActivityRunClosures      = "RunClosures"
	ActivityCancelClosures   = "CancelClosures"
	ActivityReleaseResources = "ReleaseResources"
	// ActivityEndClosures ends the queue of a run that has ended.
	ActivityEndClosures = "EndClosures"
	// ActivityClosuresCheck finds out for a queue that its run has ended without ending the
	// queue.
	ActivityClosuresCheck = "ClosuresCheck"

	// ErrNotServed is the type of the error of a lease on a host that has no tasks of the run,
	// or no longer has any.
	ErrNotServed = "NotServed"
)
