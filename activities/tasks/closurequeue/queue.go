package closurequeue

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Queue is a client of the queue of a run, with a name of its own. Its methods may be called
// concurrently.
type Queue struct {
	client *Client
	name   string // identifies this client to the queue

	ctx    context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup // started only with mu held and ctx not done

	mu sync.Mutex
	outbox
	awaited
	batch, call uint64
	epoch       uint64
	// raised is the queue's error that a schedule request has received. The next call must
	// return it.
	raised error
	// broken is the reason why nothing can be scheduled any more.
	broken error
	// early has the outcomes that arrived before the ID of their closure.
	early early
	// resources are the resources that were created here and have not been released.
	resources resources
	// changed is closed and replaced when one of the fields above has changed.
	changed chan struct{}

	// following holds an element while a goroutine checks whether the history is followed.
	following chan struct{}
	followed  bool
}

// Open attaches to the queue of a run, and creates it with that input if there is none. A queue
// that ended with its run can still be read. The execution of the run must be its first one.
func Open(ctx context.Context, s client.Client, taskQueue string, in closure.QueueInput) (*Queue, error) {
	c := NewClient(s, in.Run)
	c.TaskQueue = taskQueue
	if err := c.Open(ctx, in); err != nil {
		return nil, err
	}
	return attach(c, in.QueueSize), nil
}

// Attach attaches to the queue of a run if there is one. If there is none, requests fail with
// [ErrNoQueue].
func Attach(s client.Client, run spec.RunRef) *Queue { return attach(NewClient(s, run), 1) }

func attach(c *Client, size int) *Queue {
	q := &Queue{
		client: c, name: rand.Text(),
		outbox: outbox{room: FirstRoom(size)}, awaited: awaited{remotes: map[uint64][]*Remote{}},
		changed: make(chan struct{}), following: make(chan struct{}, 1),
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.loops.Go(q.send)
	q.loops.Go(q.releaseAll)
	return q
}

// ID returns the workflow ID of the queue.
func (q *Queue) ID() string { return q.client.ID() }

// Close ends the client. The queue continues with the closures in it. Closures that were
// scheduled here but have not been sent are lost; [Queue.Flush] waits until they are sent. The
// resources that were created here are released.
func (q *Queue) Close() {
	q.mu.Lock()
	ended := q.broken != nil
	q.cancel()
	q.mu.Unlock()
	q.fail(errClosed)
	q.loops.Wait()
	if !ended {
		q.releaseLast()
	}
}

var errClosed = errors.New("the coordinator was closed")

// fail ends all waiting with this error.
func (q *Queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.broken == nil {
		q.broken = err
	}
	for _, r := range q.pending {
		r.fail(err)
	}
	q.pending, q.pendingBytes = nil, 0
	q.failAll(err)
	q.wake()
}

// wake wakes all calls of await. q.mu must be held.
func (q *Queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// await waits until ready, which is called with q.mu held, returns true.
func (q *Queue) await(ctx context.Context, ready func() bool) error {
	for {
		q.mu.Lock()
		if ready() {
			q.mu.Unlock()
			return nil
		}
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-q.ctx.Done():
			return errClosed
		}
	}
}

// Status returns the status of the queue.
func (q *Queue) Status(ctx context.Context) (closure.QueueStatus, error) { return q.client.Status(ctx) }

// Cancel cancels closures. Without IDs it cancels all, including those that were not sent
// yet.
func (q *Queue) Cancel(ctx context.Context, ids ...uint64) (closure.CancelAnswer, error) {
	unsent := 0
	if len(ids) == 0 {
		unsent = q.cancelPending()
	}
	a, err := q.client.Cancel(ctx, closure.CancelRequest{Closures: ids})
	a.Cancelled += unsent
	return a, err
}

func (q *Queue) cancelPending() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.pending)
	for _, r := range q.pending {
		r.settle(closure.Outcome{Kind: closure.OutcomeCancelled})
	}
	q.pending, q.pendingBytes = nil, 0
	q.passed += uint64(n)
	q.wake()
	return n
}
