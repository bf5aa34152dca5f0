package rules

import (
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Config configures a [Queue].
type Config struct {
	// QueueSize is the most closures that may wait to be called, in the queue or with a host
	// beyond its slots. If it is not positive, only [closure.MaxQueueBytes] limits them.
	QueueSize int
	// TransientUnavailable is the number of the report that the same task does not answer which
	// becomes the queue's error. If it is not positive, the first report does.
	TransientUnavailable int
}

// ConfigOf returns the configuration in the input of the workflow.
func ConfigOf(in closure.QueueInput) Config {
	c := Config{QueueSize: spec.DefaultQueueSize, TransientUnavailable: spec.DefaultTransientFailures}
	if in.QueueSize != 0 {
		c.QueueSize = in.QueueSize
	}
	if in.TransientUnavailable != nil {
		c.TransientUnavailable = *in.TransientUnavailable
	}
	return c
}

// Queue is the state of a queue of closures. It is not safe for concurrent use.
//
// It is built in layers, each of which knows only those below it:
//
//	Queue        what hosts have returned, and the queue as a whole
//	requests     who waits for an answer, and the queue's error
//	dispatcher   which host gets which closure
//	backlog      closures that have not ended
type Queue struct {
	requests
	// suspended reports whether nothing is given to hosts, because the workflow is about to
	// continue as new.
	suspended bool
}

// New returns an empty queue.
func New(c Config) *Queue {
	q := &Queue{}
	q.config, q.leases, q.items, q.queues = c, map[int]*lease{}, map[uint64]*item{}, newFunctionQueues()
	q.clients, q.idleEpoch = newClients(), 1
	return q
}

// Suspend sets whether the queue gives nothing to hosts, because the workflow is about to
// continue as new. Outcomes are still recorded.
func (q *Queue) Suspend(suspended bool) { q.suspended = suspended }

// TooLarge records that the queue is too large to continue as new. No closures get in until the
// present ones have ended, or until [Restore].
func (q *Queue) TooLarge() { q.tooLarge = len(q.items) }

// Shrunk reports whether half of the closures have ended that made the queue too large.
func (q *Queue) Shrunk() bool { return q.tooLarge > 0 && 2*len(q.items) <= q.tooLarge }
