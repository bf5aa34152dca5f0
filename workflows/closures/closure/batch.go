package closure

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// ServingMessage is the signal by which a host reports which of its tasks serve: all of
// them, whenever that changes.
type ServingMessage struct {
	Host string `json:"host,omitempty"`
	// Queue is the task queue of the host worker.
	Queue string `json:"queue,omitempty"`
	// Seq grows with every message of a host worker, and from one to the next; an older one is
	// ignored.
	Seq     int64         `json:"seq,omitempty"`
	Serving []ServingTask `json:"serving,omitempty"`
	// Over, if not empty, says how the run ended.
	Over string `json:"over,omitempty"`
}

// ServingTask is a task that calls closures.
type ServingTask struct {
	Task string `json:"task"`
	// Slots is the number of closures that it calls at the same time.
	Slots int `json:"slots"`
}

// Batch is the input of [ActivityRunClosures]: closures for the tasks of the host that takes
// it. Its heartbeat is the host's promise that it has them.
//
// The activity may end before its closures. Its result then names those that the host is calling,
// and another batch for the queue of this host waits for them.
type Batch struct {
	Run       spec.RunRef `json:"run"` // with its first execution
	Closures  []Closure   `json:"closures,omitempty"`
	Resources []Resource  `json:"resources,omitempty"`
	// Released are resources that are no longer needed: processes drop what they have built.
	Released []uint64 `json:"released,omitempty"`
	// Calling are closures that the host is calling already. With a Grace they are cancelled:
	// the process of a call that has not ended after it is restarted.
	Calling []uint64      `json:"calling,omitempty"`
	Grace   time.Duration `json:"grace,omitempty"`
}

// BatchResult is the result of [ActivityRunClosures].
type BatchResult struct {
	Outcomes []Outcome `json:"outcomes,omitempty"`
	// Returned are closures that no process has begun to call. A call before them takes long.
	Returned []uint64 `json:"returned,omitempty"`
	// Calling are the closures that are being called by processes of the host with that Queue.
	Calling []uint64 `json:"calling,omitempty"`
	Queue   string   `json:"queue,omitempty"`
	// Took is the time for which the host had the batch, in milliseconds.
	Took int `json:"took_ms,omitempty"`
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
