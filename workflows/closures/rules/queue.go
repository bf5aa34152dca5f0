package rules

import (
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Config is what a queue is told once.
type Config struct {
	// QueueSize is how many closures may wait to be called, in the queue or with a host
	// beyond its slots. Not positive: as many as fit into [closure.MaxQueueBytes].
	QueueSize int
	// TransientUnavailable is which report that the same task does not answer is the
	// queue's error. Not positive: the first.
	TransientUnavailable int
}

// ConfigOf reads the input of the workflow.
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
type Queue struct {
	config Config

	// items are those that have not ended, by ID. Of those that have, nothing is kept.
	items  map[uint64]*item // for look-ups only: ranging over a map has no order
	lanes  lanes
	lastID uint64
	// queued and executing are how many there are, and attached of them without those
	// that are detached.
	queued, executing                 int
	attachedQueued, attachedExecuting int
	bytes                             int

	hosts     []*host                // by name and queue
	workers   []closure.WorkerStatus // see sortedWorkers
	leases    map[int]*lease
	lastLease int
	seen      functions
	// lastRelease is the number of the last [ReleaseOn] of this execution.
	lastRelease int

	// line are requests that wait, the oldest first. entering is one whose closures
	// have IDs while there was no room for all of them yet; it goes before the line.
	line     []*request
	entering *request
	// fault is the queue's error. drain is the request that gets it when nothing
	// executes any more.
	fault *closure.Error
	drain *request
	// last is the error that was raised last. It is still owed to some clients.
	last *closure.Error
	// period counts from 1 how often nothing was open, but for detached closures.
	period uint64

	clients   clients
	keys      keys
	resources resources
	peers     peers
	decided   decisions
	counts    closure.QueueCounts

	paused bool
	reason string
	quiet  bool
	// crowded is how many closures there were when the queue was too large; 0: it was
	// not. No more get in as long as there are some.
	crowded int
	ended   string // how the run has ended
	// firstEnded and lastEnded bound the IDs that ended since New or Restore.
	firstEnded, lastEnded uint64
}

// New makes an empty queue.
func New(c Config) *Queue {
	return &Queue{
		config: c, items: map[uint64]*item{}, lanes: newLanes(), leases: map[int]*lease{},
		period: 1, clients: newClients(), keys: newKeys(),
	}
}

// Quiet stops the queue from giving anything to hosts, because the workflow is
// about to continue as new. Outcomes are still taken in.
func (q *Queue) Quiet(quiet bool) { q.quiet = quiet }

// Crowded lets no more closures in as long as there are some, because the queue is too
// large to go on in another execution. It holds until [Restore].
func (q *Queue) Crowded() { q.crowded = len(q.items) }

// Shrunk reports whether half of the closures have ended that made the queue too large.
func (q *Queue) Shrunk() bool { return q.crowded > 0 && 2*len(q.items) <= q.crowded }

// Pause stops the queue from giving new closures to hosts. What they hold goes on.
func (q *Queue) Pause(r closure.PauseRequest) {
	q.paused, q.reason = r.Paused, ""
	if r.Paused {
		q.reason = shorten.Head(r.Reason, maxReason)
		if q.reason == "" {
			q.reason = "paused"
		}
	}
}

// maxReason bounds the words for why a queue is paused, and for how a run ended.
const maxReason = 1000

// add queues an item for the first time.
func (q *Queue) add(it *item) {
	q.counts.Scheduled++
	q.items[it.ID] = it
	q.lanes.of(it).append(it)
	q.queuedOne(it)
}

func (q *Queue) queuedOne(it *item) {
	q.queued++
	if !it.detached() {
		q.attachedQueued++
	}
}

// takeOut removes an item from where it is: the queue, or the host that holds it.
func (q *Queue) takeOut(it *item) {
	attached := 1
	if it.detached() {
		attached = 0
	}
	if it.host != nil {
		it.host.drop(it)
		q.executing--
		q.attachedExecuting -= attached
	} else {
		it.lane.remove(it)
		q.queued--
		q.attachedQueued -= attached
	}
}

// end is the end of a closure, which counts in one of the counts.
func (q *Queue) end(it *item, count *uint64) {
	q.takeOut(it)
	delete(q.items, it.ID)
	q.bytes -= it.size
	q.useNoMore(it.Resources)
	*count++
	q.noteEnded(it.ID, it.ID)
}

// cancel ends a closure by the queue's own decision.
func (q *Queue) cancel(it *item) {
	q.end(it, &q.counts.Cancelled)
	q.decided.cancel(it.ID, it.ID)
	q.keys.forget(it.key(), it.ID)
}

// putBack queues an item again that a host gave back, at its old place. What was to
// be cancelled is cancelled, and while there is an error so is the rest.
func (q *Queue) putBack(it *item) {
	if it.told || q.fault != nil && !it.detached() {
		q.cancel(it)
		return
	}
	q.takeOut(it)
	q.lanes.of(it).putBack(it)
	q.queuedOne(it)
	q.counts.PutBack++
}

func (q *Queue) noteEnded(first, last uint64) {
	if q.firstEnded == 0 || first < q.firstEnded {
		q.firstEnded = first
	}
	q.lastEnded = max(q.lastEnded, last)
}

// Ended bounds the IDs of the closures that ended since [New] or [Restore]; 0 if
// none has.
func (q *Queue) Ended() (first, last uint64) { return q.firstEnded, q.lastEnded }
