package clustercoordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Coordinator schedules closures on a run's tasks. Its methods may be called concurrently.
type Coordinator struct {
	queue queue
	name  string // this client's name in the queue

	ctx    context.Context
	cancel context.CancelFunc
	loop   sync.WaitGroup
	// one serializes Schedule, Join and Done. While Join waits, Schedule also waits.
	one chan struct{}

	mu sync.Mutex
	// unsent holds new closures, and sent those that the queue may have received. It has confirmed
	// the first scheduled ones. room limits unsent and sent.
	unsent, sent []*RemoteValue
	scheduled    uint64
	room         int
	// hurry makes the queue confirm new closures before their outcomes.
	hurry bool
	// open holds the closures without an outcome, except for unsent ones, by number. taken counts
	// the outcomes received.
	open     map[uint64]*RemoteValue
	taken    uint64
	released []uint64
	// joining reports whether Join or Done is in progress, and waiting whether it is Join. asked is
	// the number of answers so far, and done the last one.
	joining, waiting bool
	asked            int
	done             bool
	// failed reports whether the queue is about to raise an error. raised is the error that the
	// next call returns. broken is why nothing more can be scheduled.
	failed         bool
	raised, broken error
	changed        chan struct{} // closed when any of these changes
	// abandon cancels the request in progress if that request waits for outcomes.
	abandon context.CancelFunc
}

// queue is a closurequeue.Client.
type queue interface {
	closurequeue.Queue
	ID() string
	Status(ctx context.Context) (closure.QueueStatus, error)
}

// closePatience limits how long Close waits for the scheduled closures to enter the queue.
const closePatience = 2 * time.Second

// New attaches to a run's queue, creating it if necessary. It does not wait for tasks, because
// closures remain queued until tasks serve.
func New(ctx context.Context, run *starter.Run) (*Coordinator, error) {
	q, err := run.Calls(ctx)
	if err != nil {
		return nil, err
	}
	return attach(ctx, q)
}

func attach(ctx context.Context, q queue) (*Coordinator, error) {
	c := &Coordinator{
		queue: q, name: rand.Text(), one: make(chan struct{}, 1),
		open: map[uint64]*RemoteValue{}, changed: make(chan struct{}),
	}
	a, err := q.Sync(ctx, closure.SyncRequest{Client: c.name})
	if err != nil {
		return nil, err
	}
	c.answered(closure.SyncRequest{}, a)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.loop.Go(c.run)
	return c, nil
}

// Close detaches from the queue. It waits up to two seconds for the scheduled closures to enter the
// queue, where they continue. If the queue is full or the server is unreachable, some closures may
// not reach the queue in this time. To be certain, call Flush first.
func (c *Coordinator) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	_ = c.Flush(ctx)
	c.cancel()
	c.fail(errors.New("the coordinator was closed"))
	c.loop.Wait()
}

// Flush waits until all scheduled closures are in the queue.
func (c *Coordinator) Flush(ctx context.Context) error {
	c.mu.Lock()
	c.hurry = true
	c.wake()
	c.mu.Unlock()
	err := c.await(ctx, func() bool { return len(c.unsent)+len(c.sent) == 0 || c.broken != nil })
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(err, c.broken)
}

// QueueID returns the queue's workflow ID.
func (c *Coordinator) QueueID() string { return c.queue.ID() }

// Status returns the queue's status.
func (c *Coordinator) Status(ctx context.Context) (closure.QueueStatus, error) {
	return c.queue.Status(ctx)
}

// Schedule schedules a function call on any task and immediately returns a handle on its value.
// It blocks while the queue is full. Arguments are values that JSON can represent, and
// [PerWorkerValues].
//
// If a previously scheduled closure has failed, Schedule returns that closure's error, does not
// schedule the new closure, and cancels the closures that have not been called yet.
func (c *Coordinator) Schedule(ctx context.Context, function string, args ...any) (*RemoteValue, error) {
	return c.ScheduleWith(ctx, function, args, nil)
}

// ScheduleWith is like Schedule, but also takes named arguments.
func (c *Coordinator) ScheduleWith(ctx context.Context, function string, args []any, kwargs map[string]any) (*RemoteValue, error) {
	v, err := newRemoteValue(function, args, kwargs)
	if err != nil {
		return nil, err
	}
	leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := c.await(ctx, func() bool {
		return c.raised != nil || c.broken != nil || len(c.unsent)+len(c.sent) < max(1, c.room)
	}); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.tell(); err != nil {
		return nil, err
	}
	c.unsent = append(c.unsent, v)
	c.wake()
	return v, nil
}

func (c *Coordinator) enter(ctx context.Context) (leave func(), err error) {
	select {
	case c.one <- struct{}{}:
		return func() { <-c.one }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Join waits until all scheduled closures have been called, and returns the first error.
func (c *Coordinator) Join(ctx context.Context) error {
	_, err := c.wait(ctx, false)
	return err
}

// Done reports whether all scheduled closures have been called. Like Join, it returns the first
// error.
func (c *Coordinator) Done(ctx context.Context) (bool, error) { return c.wait(ctx, true) }

func (c *Coordinator) wait(ctx context.Context, poll bool) (bool, error) {
	leave, err := c.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	c.mu.Lock()
	open := len(c.open)+len(c.unsent) > 0 && !c.failed && c.raised == nil && c.broken == nil
	asked := c.asked
	if !poll || !open {
		c.joining, c.waiting = true, !poll
		c.wake()
	}
	c.mu.Unlock()
	if poll && open {
		return false, nil
	}
	err = c.await(ctx, func() bool {
		return c.raised != nil || c.broken != nil || c.asked != asked && (c.done || poll && !c.failed)
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joining = false
	return c.done, errors.Join(err, c.tell())
}

// tell returns the pending error once. c.mu must be held.
func (c *Coordinator) tell() error {
	err := c.raised
	c.raised = nil
	if err == nil {
		err = c.broken
	}
	return err
}

// await waits until ready returns true. It calls ready with c.mu held.
func (c *Coordinator) await(ctx context.Context, ready func() bool) error {
	for {
		c.mu.Lock()
		is, changed := ready(), c.changed
		c.mu.Unlock()
		if is {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wake makes the loop send a request. c.mu must be held.
func (c *Coordinator) wake() {
	if c.abandon != nil {
		c.hurry = true
		c.abandon()
	}
	c.change()
}

// change wakes all calls that are waiting. c.mu must be held.
func (c *Coordinator) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// fail makes everything that is waiting fail.
func (c *Coordinator) fail(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return
	}
	c.broken = &closure.Error{Kind: closure.ErrCancelled, Message: fmt.Sprintf("%s (%s)", closure.TextAborted, why)}
	for _, v := range c.unsent {
		v.end(nil, c.broken)
	}
	for _, v := range c.open {
		v.end(nil, c.broken)
	}
	c.unsent, c.sent = nil, nil
	clear(c.open)
	c.change()
}
