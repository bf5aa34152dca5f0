package closure

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ServingMessage is the signal by which a host reports which of its tasks serve: all of
// them, whenever that changes.
type ServingMessage struct {
	Host string `json:"host"`
	// Queue is the task queue of the host worker.
	Queue string `json:"queue"`
	// Seq grows with every message of the broker; an older one is ignored.
	Seq int64 `json:"seq"`
	// Broker identifies the life of the host worker. What an earlier one held is leased again
	// at once, before its leases time out.
	Broker  string        `json:"broker,omitempty"`
	Serving []ServingTask `json:"serving"`
	// Lists is used in JSON only; see [ServingTask.List].
	Lists [][]string `json:"lists,omitempty"`
	// Over, if not empty, is how the run has ended.
	Over string `json:"over,omitempty"`
}

// ServingTask is a task that calls closures.
type ServingTask struct {
	Task string `json:"task"`
	// Process tells the processes of the task apart.
	Process string `json:"process"`
	// Slots is how many closures it calls at the same time.
	Slots int `json:"slots"`
	// Functions are the names it has registered, sorted.
	Functions []string `json:"functions,omitempty"`
	// List is used in JSON only, if the lists are long: it is the place of its functions in
	// the lists of the message, from 1.
	List int `json:"list,omitempty"`
}

// Lease is the input of [ActivityRunClosures]: closures for the tasks of a host.
// The activity returns as soon as all of them have ended, or earlier with some.
// Its end, of whatever kind, cancels none of them: those it does not return stay on
// the host, and the next lease that names them takes over.
type Lease struct {
	// Queue is the workflow ID of the queue, and Run the run.
	Queue string      `json:"queue"`
	Run   spec.RunRef `json:"run"`
	// Closures are new ones, and those that the host holds already, by ID. The host takes one
	// that it does not hold for new.
	Closures  []Closure  `json:"closures"`
	Resources []Resource `json:"resources,omitempty"`
	// Cancelled are those of them that were cancelled, as by [CancelLease] with this Grace. A
	// host worker that was restarted may not know.
	Cancelled []uint64      `json:"cancelled,omitempty"`
	Grace     time.Duration `json:"grace,omitempty"`
	// Released are ranges of the IDs of dropped resources, first and last. Processes drop what
	// they have built of them.
	Released [][2]uint64 `json:"released,omitempty"`
}

// LeaseResult is the result of [ActivityRunClosures].
type LeaseResult struct {
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// Rest are the IDs of those that have not ended.
	Rest []uint64 `json:"rest,omitempty"`
	// Idle reports whether some slot had nothing to do when this was returned.
	Idle bool `json:"idle,omitempty"`
	// Done is how many closures the host ended during the lease, including those of other
	// leases, and Took how long it had the lease, in milliseconds.
	Done int `json:"done,omitempty"`
	Took int `json:"took_ms,omitempty"`
}

// LeaseBeat are the details of a lease's heartbeats.
type LeaseBeat struct {
	// Executing is how many of its closures are being called.
	Executing int `json:"executing"`
}

// CancelLease is the input of [ActivityCancelClosures]. Calls that run are told to end, and
// their process is restarted after Grace. The closures end in their leases, as cancelled or
// otherwise.
type CancelLease struct {
	Queue    string        `json:"queue"`
	Run      spec.RunRef   `json:"run"`
	Closures []uint64      `json:"closures"`
	Grace    time.Duration `json:"grace"`
}

// ReleasedResources is the input of [ActivityReleaseResources], for a host without leases. A
// [Lease] tells the same.
type ReleasedResources struct {
	Queue    string      `json:"queue"`
	Run      spec.RunRef `json:"run"`
	Released [][2]uint64 `json:"released"`
}

// EndInput is the input of [ActivityEndClosures].
type EndInput struct {
	Run  spec.RunRef `json:"run"` // with its first execution
	Over string      `json:"over"`
}

// CheckInput is the input of [ActivityClosuresCheck], which lasts as long as the run is open.
type CheckInput struct {
	Run spec.RunRef `json:"run"` // with its first execution
}

// CheckOutput is the result of [ActivityClosuresCheck].
type CheckOutput struct {
	// Over is how the run has ended.
	Over string `json:"over"`
}
