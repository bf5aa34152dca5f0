package closure

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ServingMessage is the signal that a host sends with all of its serving tasks, whenever they
// change.
type ServingMessage struct {
	Host string `json:"host,omitempty"`
	// Queue is the task queue of the host worker.
	Queue string `json:"queue,omitempty"`
	// Seq increases with every message from a host even if its host worker is replaced. Older
	// messages are ignored.
	Seq     int64         `json:"seq,omitempty"`
	Serving []ServingTask `json:"serving,omitempty"`
	// Over, if not empty, describes how the run finished.
	Over string `json:"over,omitempty"`
}

// ServingTask is a task that calls closures.
type ServingTask struct {
	Task string `json:"task"`
	// Slots is its number of concurrent calls.
	Slots int `json:"slots"`
}

// Batch is the input of [ActivityRunClosures]. It contains closures for tasks on whichever host
// takes the batch. By sending heartbeats, the host confirms that it still has them.
//
// The activity may return before its closures end. Its result then names those that the host is
// calling, and another batch for this host's queue waits for them.
type Batch struct {
	Run       spec.RunRef `json:"run"` // identified by its first execution
	Closures  []Closure   `json:"closures,omitempty"`
	Resources []Resource  `json:"resources,omitempty"`
	// Released lists resources that are no longer needed. Processes drop what they have built of
	// them.
	Released []uint64 `json:"released,omitempty"`
	// Calling lists closures that the host is already calling. If Grace is set, these calls are
	// cancelled, and a process is restarted if its call outlasts the grace.
	Calling []uint64      `json:"calling,omitempty"`
	Grace   time.Duration `json:"grace,omitempty"`
}

// BatchResult is the result of [ActivityRunClosures].
type BatchResult struct {
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// Returned lists closures that no process has started to call because an earlier call takes
	// long.
	Returned []uint64 `json:"returned,omitempty"`
	// Calling lists the closures that processes on the host with the given Queue are calling.
	Calling []uint64 `json:"calling,omitempty"`
	Queue   string   `json:"queue,omitempty"`
	// Took is the batch's duration on the host, in milliseconds.
	Took int `json:"took_ms,omitempty"`
}

// EndInput is the input of [ActivityEndClosures].
type EndInput struct {
	Run  spec.RunRef `json:"run"` // identified by its first execution
	Over string      `json:"over"`
}

// CheckInput is the input of [ActivityClosuresCheck], which lasts as long as the run is open.
type CheckInput struct {
	Run spec.RunRef `json:"run"` // identified by its first execution
}

// CheckOutput is the result of [ActivityClosuresCheck].
type CheckOutput struct {
	// Over describes how the run finished.
	Over string `json:"over"`
}
