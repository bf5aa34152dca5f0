package closure

import (
	"encoding/json"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Closure is a function that tasks have registered, with arguments, for one of
// them to call.
type Closure struct {
	// ID counts the closures of a queue from 1, in the order they were scheduled.
	ID uint64 `json:"id,omitempty"`
	// Function is the name under which tasks have registered it.
	Function string `json:"function"`
	// Args and Kwargs are JSON: an array and an object. An object with the one key
	// [ResourceKey] among them stands for what the executing task has built of that
	// per-worker resource.
	Args   json.RawMessage `json:"args,omitempty"`
	Kwargs json.RawMessage `json:"kwargs,omitempty"`
	// Resources are the IDs of those it uses.
	Resources []uint64 `json:"resources,omitempty"`
	// Attempt counts how often it was given to a task, from 1.
	Attempt int `json:"attempt,omitempty"`
	// Options are rare; nil is none.
	Options *Options `json:"options,omitempty"`
}

// Size returns what the closure counts against [MaxQueueBytes] and [MaxBatchBytes]: the
// bytes of its arguments and names.
func (c *Closure) Size() int {
	size := len(c.Function) + len(c.Args) + len(c.Kwargs)
	if c.Options != nil {
		size += len(c.Options.Key) + len(c.Options.Task)
	}
	return size
}

// Options are the options of a closure. The seed has none.
type Options struct {
	// Key makes scheduling it again with the same key the same closure, for as long as the
	// run lives, unless that was cancelled. One that has failed raises its error again.
	Key string `json:"key,omitempty"`
	// Retry makes this a new closure if the one with the key has failed.
	Retry bool `json:"retry,omitempty"`
	// Task is the only task that may call it. Empty: any. A pool calls a function once in
	// each of its tasks.
	Task string `json:"task,omitempty"`
	// Detached: join and done do not wait for it, and its error is only its own.
	Detached bool `json:"detached,omitempty"`
	// Timeout bounds one call. None: nothing does.
	Timeout Timeout `json:"timeout,omitempty"`
	// MaxLosses is how often its task may die under it before it is not put back any
	// more. nil: [DefaultMaxLosses]. Negative: without limit, as in the seed.
	MaxLosses *int `json:"max_losses,omitempty"`
}

// Timeout is a time span, as a text such as "1.5s", which [Closure.Validate] checks.
type Timeout string

// TimeoutOf writes a time span; 0 is none.
func TimeoutOf(d time.Duration) Timeout {
	if d == 0 {
		return ""
	}
	return Timeout(spec.Duration(d).String())
}

// Span returns the time span of a valid timeout; 0: none.
func (t Timeout) Span() time.Duration {
	d, _ := spec.ParseDuration(string(t))
	return d.Std()
}

// Limits of closures.
const (
	// DefaultMaxLosses: a closure that has killed more tasks than that is set aside.
	DefaultMaxLosses = 10
	// MaxQueueBytes is what the closures of a queue may have together in arguments and
	// names. A full queue makes schedule wait.
	MaxQueueBytes = 1536 << 10
	// MaxBytes bounds the arguments of one closure, and its value.
	MaxBytes = 256 << 10
	// MaxBatchBytes bounds what is sent at once.
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
	// MaxErrorArgs bounds what an exception was made of, as JSON.
	MaxErrorArgs = 1 << 10
)

// ResourceKey is the key of the object that stands for a per-worker resource among
// the arguments of a closure; its value is the ID.
const ResourceKey = "$clusterrun.resource"

// Resource is built by every task that calls a closure with it, once in each
// process. It is there until its client releases it, and the last closure
// with it has ended.
type Resource struct {
	ID       uint64          `json:"id,omitempty"`
	Function string          `json:"function"`
	Args     json.RawMessage `json:"args,omitempty"`
	Kwargs   json.RawMessage `json:"kwargs,omitempty"`
}
