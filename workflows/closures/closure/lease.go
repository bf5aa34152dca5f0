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
	// Broker identifies the life of the host worker. The closures of an earlier life are leased
	// again at once, before its leases time out.
	Broker  string        `json:"broker,omitempty"`
	Serving []ServingTask `json:"serving"`
	// Lists is used in JSON only; see [ServingTask.List].
	Lists [][]string `json:"lists,omitempty"`
	// Over, if not empty, says how the run ended.
	Over string `json:"over,omitempty"`
}

// ServingTask is a task that calls closures.
type ServingTask struct {
	Task string `json:"task"`
	// Process identifies the process of the task.
	Process string `json:"process"`
	// Slots is the number of closures that it calls at the same time.
	Slots int `json:"slots"`
	// Functions are the names it has registered, sorted.
	Functions []string `json:"functions,omitempty"`
	// List is used in JSON only, if the lists are long: it is the place of its functions in
	// the lists of the message, from 1.
	List int `json:"list,omitempty"`
}

// Lease is the input of [ActivityRunClosures]: closures for the tasks of a host. The activity
// returns as soon as all of them have ended, or earlier with some. Its end, of any kind,
// cancels none of them: the closures that it does not return stay on the host, and the next
// lease that names them takes over.
type Lease struct {
	// Queue is the workflow ID of the queue, and Run the run.
	Queue string      `json:"queue"`
	Run   spec.RunRef `json:"run"`
	// Closures are new closures, and closures that the host holds already, by ID. The host
	// takes a closure that it does not hold for new.
	Closures  []Closure  `json:"closures"`
	Resources []Resource `json:"resources,omitempty"`
	// Cancelled are the closures among them that were cancelled, as by [CancelLease] with this
	// Grace. A host worker that was restarted may not know.
	Cancelled []uint64      `json:"cancelled,omitempty"`
	Grace     time.Duration `json:"grace,omitempty"`
	// Released are ranges of the IDs of dropped resources, first and last. Processes drop the
	// objects that they have built of them.
	Released [][2]uint64 `json:"released,omitempty"`
}

// LeaseResult is the result of [ActivityRunClosures].
type LeaseResult struct {
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// Rest are the IDs of closures that have not ended.
	Rest []uint64 `json:"rest,omitempty"`
	// Idle reports whether some slot was free when this was returned.
	Idle bool `json:"idle,omitempty"`
	// Done is the number of closures that the host ended during the lease, including closures
	// of other leases, and Took the time for which it had the lease, in milliseconds.
	Done int `json:"done,omitempty"`
	Took int `json:"took_ms,omitempty"`
}

// CancelLease is the input of [ActivityCancelClosures]. The host cancels running calls, and
// restarts their process after Grace. The closures end in their leases, as cancelled or
// otherwise.
type CancelLease struct {
	Queue    string        `json:"queue"`
	Run      spec.RunRef   `json:"run"`
	Closures []uint64      `json:"closures"`
	Grace    time.Duration `json:"grace"`
}

// ReleasedResources is the input of [ActivityReleaseResources], for a host without leases. A
// [Lease] has the same list.
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
	// Over says how the run ended.
	Over string `json:"over"`
}
