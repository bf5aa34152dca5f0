package rules

import (
	"errors"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Config configures a queue.
type Config struct {
	// Size is the maximum number of waiting closures.
	Size int
	// TransientUnavailable is how many reports about a task make an error.
	TransientUnavailable int
}

// ConfigOf returns the configuration in a queue's input.
func ConfigOf(in closure.QueueInput) Config {
	c := Config{Size: in.Size(), TransientUnavailable: spec.DefaultTransientFailures}
	if in.TransientUnavailable != nil {
		c.TransientUnavailable = *in.TransientUnavailable
	}
	return c
}

// State is everything that a queue keeps for its next execution.
type State struct {
	// Last is the ID of the last closure.
	Last uint64 `json:"last"`
	// Waiting lists the closures that are not in a batch, by ID.
	Waiting []*Item `json:"waiting,omitempty"`
	// Batches lists the batches without a result, by number. LastBatch is the last number used.
	Batches   []*Batch           `json:"batches,omitempty"`
	LastBatch int                `json:"last_batch,omitempty"`
	Clients   []*Client          `json:"clients,omitempty"`
	Hosts     []*Host            `json:"hosts,omitempty"`
	Resources []closure.Resource `json:"resources,omitempty"`
	// Leaving lists released resources that closures may still use, and Released the latest ones
	// that are no longer used.
	Leaving  []uint64 `json:"leaving,omitempty"`
	Released []uint64 `json:"released,omitempty"`
	// Fault is the queue's error, and Drain the client that receives it once nothing is executing.
	Fault *closure.Error `json:"fault,omitempty"`
	Drain string         `json:"drain,omitempty"`
	// Unavailable holds the number of reports about each task, and Most limits the closures per
	// batch.
	Unavailable map[string]int      `json:"unavailable,omitempty"`
	Most        int                 `json:"most,omitempty"`
	Counts      closure.QueueCounts `json:"counts"`
}

// Item is a closure.
type Item struct {
	closure.Closure
	// Number is the closure's number, counted by the client.
	Client string `json:"client"`
	Number uint64 `json:"number"`
	Losses int    `json:"losses,omitempty"`
}

// Batch is a batch of closures that a host executes or will execute.
type Batch struct {
	Number int     `json:"number"`
	Items  []*Item `json:"items"`
	// Queue is the only host queue that may take it, or empty if any may. Calling reports whether
	// that host is already calling its closures.
	Queue   string `json:"queue,omitempty"`
	Calling bool   `json:"calling,omitempty"`
	// Cancelled reports whether its closures must stop.
	Cancelled bool `json:"cancelled,omitempty"`
}

// Queue is a run's closure queue.
type Queue struct {
	State
	config Config
	now    time.Time
	bytes  int // size of the waiting closures
	kept   int // bytes of the untaken outcomes
	// calls lists the waiting requests of clients, in the order of arrival.
	calls []*Call
	// suspended reports whether all batches must stop because the queue continues as new.
	suspended bool
	// open holds the numbers of the batches with running activities.
	open    map[int]bool
	ended   string
	actions []Action
}

// New returns an empty queue.
func New(c Config) *Queue { return Restore(c, State{}) }

// Restore returns a queue with an earlier execution's state. No batch is open.
func Restore(c Config, s State) *Queue {
	q := &Queue{State: s, config: c, open: map[int]bool{}}
	if q.Unavailable == nil {
		q.Unavailable = map[string]int{}
	}
	for _, it := range q.Waiting {
		q.bytes += it.Size()
	}
	for _, client := range q.Clients {
		for _, o := range client.Outcomes {
			q.kept += sizeOf(o)
		}
	}
	for _, b := range q.Batches {
		q.act(b, false)
	}
	q.advance()
	return q
}

// Action starts a batch's activity, or cancels it.
type Action struct {
	Batch  *Batch
	Cancel bool
}

// Actions returns the commands for the workflow, and clears them.
func (q *Queue) Actions() []Action {
	a := q.actions
	q.actions = nil
	return a
}

func (q *Queue) act(b *Batch, cancel bool) {
	if !cancel {
		q.open[b.Number] = true
	}
	q.actions = append(q.actions, Action{b, cancel})
}

// Now sets the time. It must be called before other methods if time has passed.
func (q *Queue) Now(t time.Time) { q.now = t }

// Suspend stops all batches because the queue is about to continue as new.
func (q *Queue) Suspend() {
	q.suspended = true
	for _, b := range q.Batches {
		q.act(b, true)
	}
}

// Carried returns the state for the next execution. It contains the closures of unfinished batches,
// which are sent again because their hosts cannot answer.
func (q *Queue) Carried() State {
	for _, b := range slices.Clone(q.Batches) {
		if q.open[b.Number] {
			q.BatchFailed(b.Number)
		}
	}
	return q.State
}

// Resume restarts what Suspend stopped.
func (q *Queue) Resume() {
	q.suspended = false
	for _, b := range q.Batches {
		q.act(b, false)
	}
	q.advance()
}

// Serving records which of a host's tasks serve, or that the run has finished.
func (q *Queue) Serving(m closure.ServingMessage) {
	if m.Over != "" {
		q.RunEnded(m.Over)
		return
	}
	var h *Host
	for _, other := range q.Hosts {
		if other.Name == m.Host {
			h = other
		}
	}
	if h == nil {
		h = &Host{Name: m.Host}
		q.Hosts = append(q.Hosts, h)
	}
	if m.Seq > h.Seq {
		h.Seq, h.Queue, h.Tasks = m.Seq, m.Queue, m.Serving
	}
	q.advance()
}

// Host is a host with serving tasks.
type Host struct {
	Name  string                `json:"name"`
	Queue string                `json:"queue"`
	Seq   int64                 `json:"seq"`
	Tasks []closure.ServingTask `json:"tasks,omitempty"`
}

// slots returns the number of closures that can be called at the same time.
func (q *Queue) slots() (n int) {
	for _, h := range q.Hosts {
		for _, t := range h.Tasks {
			n += t.Slots
		}
	}
	return n
}

// queueOf returns the serving host's queue for a task, or an empty string.
func (q *Queue) queueOf(task string) string {
	for _, h := range q.Hosts {
		for _, t := range h.Tasks {
			if t.Task == task {
				return h.Queue
			}
		}
	}
	return ""
}

// ErrEnded refuses requests to a queue after its run has finished.
var ErrEnded = errors.New("the run has ended")

// RunEnded closes the queue, so that no more closures are called.
func (q *Queue) RunEnded(over string) {
	if q.ended != "" {
		return
	}
	q.ended = over
	for _, b := range q.Batches {
		q.Counts.Cancelled += uint64(len(b.Items))
	}
	q.Counts.Cancelled += uint64(len(q.Waiting))
	q.Batches, q.Waiting = nil, nil
	for _, c := range q.calls {
		c.refuse(q.endedError())
	}
	q.calls = nil
}
