package closure

import (
	"encoding/json"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Closure is a call of a function that tasks have registered. One of them makes it.
type Closure struct {
	// ID counts the closures of a queue from 1, in the order they were scheduled.
	ID uint64 `json:"id,omitempty"`
	// Function is the name under which tasks have registered it.
	Function string `json:"function"`
	// Args and Kwargs are a JSON array and a JSON object. An object in them with the only key
	// [ResourceKey] stands for the object that the executing task has built of that per-worker
	// resource.
	Args   json.RawMessage `json:"args,omitempty"`
	Kwargs json.RawMessage `json:"kwargs,omitempty"`
	// Resources are the IDs of the per-worker resources that it uses.
	Resources []uint64 `json:"resources,omitempty"`
	// Attempt counts how often it was given to a task, from 1.
	Attempt int `json:"attempt,omitempty"`
	// Options is nil for most closures, which have none.
	Options *Options `json:"options,omitempty"`
}

// Size returns the size of the closure for [MaxQueueBytes] and [MaxBatchBytes]: the size of its
// arguments and names, in bytes.
func (c *Closure) Size() int {
	size := len(c.Function) + len(c.Args) + len(c.Kwargs)
	if c.Options != nil {
		size += len(c.Options.Key) + len(c.Options.Task)
	}
	return size
}

// Options are the options of a closure. TensorFlow has none.
type Options struct {
	// Key identifies the closure for as long as the run lives: scheduling it again with the
	// same key does not call it again, unless it was cancelled. A closure that has failed
	// raises its error again.
	Key string `json:"key,omitempty"`
	// Retry makes this a new closure if the earlier one with the key has failed.
	Retry bool `json:"retry,omitempty"`
	// Task is the only task that may call it. If it is empty, any task may. A pool calls a
	// function once in each of its tasks.
	Task string `json:"task,omitempty"`
	// Detached reports whether join and done do not wait for it. Its error is only its own
	// then.
	Detached bool `json:"detached,omitempty"`
	// Timeout bounds one call. If it is empty, there is no limit.
	Timeout Timeout `json:"timeout,omitempty"`
	// MaxLosses is the most processes that may end during its calls; one more is an error. nil
	// means [DefaultMaxLosses]. A negative number means no limit, as in TensorFlow.
	MaxLosses *int `json:"max_losses,omitempty"`
}

// Timeout is a time span as text, such as "1.5s". [Closure.Validate] checks it.
type Timeout string

// TimeoutOf returns the text of a time span. 0 means no limit.
func TimeoutOf(d time.Duration) Timeout {
	if d == 0 {
		return ""
	}
	return Timeout(spec.Duration(d).String())
}

// Span returns the time span of a valid timeout. 0 means no limit.
func (t Timeout) Span() time.Duration {
	d, _ := spec.ParseDuration(string(t))
	return d.Std()
}

// Limits of closures.
const (
	// DefaultMaxLosses is the default of [Options.MaxLosses].
	DefaultMaxLosses = 10
	// MaxQueueBytes bounds the sizes of all closures of a queue together. A full queue makes
	// schedule wait.
	MaxQueueBytes = 1536 << 10
	// MaxBytes bounds the arguments of one closure, and its value.
	MaxBytes = 256 << 10
	// MaxBatchBytes bounds the sizes of the closures that are sent at once.
	MaxBatchBytes = 512 << 10
	// MaxBatch bounds the closures that are sent at once.
	MaxBatch = 1000
	// MaxResources bounds the per-worker resources of one closure.
	MaxResources = 100
	// MaxFunctionName is the longest name of a function, a client or a key, in bytes.
	MaxFunctionName = 200
	// MaxError bounds the text of an error, and MaxTraceback its
	// traceback, whose last bytes are kept.
	MaxError     = 8 << 10
	MaxTraceback = 16 << 10
	// MaxErrorArgs bounds the arguments of an exception, as JSON.
	MaxErrorArgs = 1 << 10
)

// ResourceKey is the key of the object that stands for a per-worker resource in the
// arguments of a closure. Its value is the ID.
const ResourceKey = "$clusterrun.resource"

// Resource is a per-worker resource. Each process that calls a closure with it builds it
// once. It lasts until its client has released it and the last closure with it has ended.
type Resource struct {
	ID       uint64          `json:"id,omitempty"`
	Function string          `json:"function"`
	Args     json.RawMessage `json:"args,omitempty"`
	Kwargs   json.RawMessage `json:"kwargs,omitempty"`
}
