package closure

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ServingMessage is what a host tells the queue about the tasks that serve there,
// as a signal: all of them, whenever that changes.
type ServingMessage struct {
	Host string `json:"host"`
	// Queue is that of the host worker.
	Queue string `json:"queue"`
	// Seq grows with every message of the broker; an older one is ignored.
	Seq int64 `json:"seq"`
	// Broker tells the host worker's life apart from the one before: what an earlier
	// one held is leased anew at once, without waiting for its leases to run out.
	Broker  string        `json:"broker,omitempty"`
	Serving []ServingTask `json:"serving"`
	// Lists are there in JSON only; see [ServingTask.List].
	Lists [][]string `json:"lists,omitempty"`
	// Over says that the run has ended, and how.
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
	// List, in JSON only, is the place from 1 of its functions in the lists of the
	// message, where they are long.
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
	// Closures are those to be called, and those that the host holds already, by
	// ID. It takes one it does not hold for new.
	Closures  []Closure  `json:"closures"`
	Resources []Resource `json:"resources,omitempty"`
	// Cancelled are those of them that were cancelled, as by [CancelLease] with this
	// Grace: so a host hears of it that does not know them (any more).
	Cancelled []uint64      `json:"cancelled,omitempty"`
	Grace     time.Duration `json:"grace,omitempty"`
	// Released are ranges of IDs, first and last, of resources that nobody needs any
	// more. What processes have built of them they drop.
	Released [][2]uint64 `json:"released,omitempty"`
}

// LeaseResult is its result.
type LeaseResult struct {
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// Rest are the IDs of those that have not ended.
	Rest []uint64 `json:"rest,omitempty"`
	// Idle reports whether some slot had nothing to do when this was returned.
	Idle bool `json:"idle,omitempty"`
	// Done is how many closures the host ended, those of other leases included, while
	// it had the lease, for Took milliseconds.
	Done int `json:"done,omitempty"`
	Took int `json:"took_ms,omitempty"`
}

// LeaseBeat are the details of a lease's heartbeats.
type LeaseBeat struct {
	// Executing is how many of its closures are being called.
	Executing int `json:"executing"`
}

// CancelLease is the input of [ActivityCancelClosures]: these are not to be called
// any more. Those being called are told, and their process is restarted after Grace.
// They end, as cancelled or otherwise, in their leases.
type CancelLease struct {
	Queue    string        `json:"queue"`
	Run      spec.RunRef   `json:"run"`
	Closures []uint64      `json:"closures"`
	Grace    time.Duration `json:"grace"`
}

// ReleasedResources is the input of [ActivityReleaseResources]. It is for a host that
// has no lease at the moment; others learn the same from a [Lease].
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

// CheckInput is the input of [ActivityClosuresCheck]. The activity lasts as long as the run is
// open; where an earlier version has scheduled it, it fails meanwhile and is tried again.
type CheckInput struct {
	Run spec.RunRef `json:"run"` // with its first execution
}

// CheckOutput is its result.
type CheckOutput struct {
	// Over says how the run has ended.
	Over string `json:"over"`
}
