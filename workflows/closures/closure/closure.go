package closure

import "encoding/json"

// Closure is a call of a function that tasks have registered. One of these tasks executes it.
type Closure struct {
	// ID counts a queue's closures from 1, in the order they were scheduled.
	ID uint64 `json:"id,omitempty"`
	// Function is the function's registered name.
	Function string `json:"function"`
	// Args and Kwargs are a JSON array and a JSON object. In both, an object whose only key is
	// [ResourceKey] stands for a per-worker resource, as built by the executing task.
	Args   json.RawMessage `json:"args,omitempty"`
	Kwargs json.RawMessage `json:"kwargs,omitempty"`
	// Resources lists the IDs of the per-worker resources that the closure uses.
	Resources []uint64 `json:"resources,omitempty"`
	// Task is the only task that may execute the closure. If it is empty, any task may. A pool
	// calls a function once in each of its tasks: join and done do not wait for such a closure, its
	// error does not affect other closures, and it is not called again if the process exits.
	Task string `json:"task,omitempty"`
}

// Size returns the size of the arguments and names, in bytes. It counts toward [MaxQueueBytes] and
// [MaxBatchBytes].
func (c *Closure) Size() int {
	return len(c.Function) + len(c.Args) + len(c.Kwargs) + len(c.Task)
}

// Limits of closures.
const (
	// MaxLosses limits the processes that may exit during calls of a closure; one more makes it
	// fail. It does not apply to closures of a certain task. TensorFlow does not limit it.
	MaxLosses = 10
	// MaxQueueBytes limits the total size of a queue's closures. If the queue is full, schedule
	// waits.
	MaxQueueBytes = 1536 << 10
	// MaxBytes limits the size of a closure's arguments, and that of its value.
	MaxBytes = 256 << 10
	// MaxBatchBytes limits the total size of the closures in a batch.
	MaxBatchBytes = 512 << 10
	// MaxBatch limits the number of closures in a batch.
	MaxBatch = 1000
	// MaxWait limits how long a process's request may wait for closures to call, in seconds.
	MaxWait = 20
	// MaxResources limits the per-worker resources of one closure.
	MaxResources = 100
	// MaxFunctionName is the maximum length of a function or client name, in bytes.
	MaxFunctionName = 200
	// MaxError limits an error message, in bytes, and MaxTraceback its traceback, of which the end
	// is kept.
	MaxError     = 8 << 10
	MaxTraceback = 16 << 10
)

// MaxResourceID is the largest number that every language represents exactly.
const MaxResourceID = 1<<53 - 1

// ResourceKey is the key of the object that stands for a per-worker resource in a closure's
// arguments. Its value is the ID.
const ResourceKey = "$clusterrun.resource"

// Resource is a per-worker resource. Each process builds it once, when it first calls a closure
// that uses it. The resource lasts until its client has released it and the last such closure has
// ended.
type Resource struct {
	// ID is a random number from 1 to [MaxResourceID], which the client has chosen.
	ID       uint64          `json:"id"`
	Function string          `json:"function"`
	Args     json.RawMessage `json:"args,omitempty"`
	Kwargs   json.RawMessage `json:"kwargs,omitempty"`
}
