package clustercoordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Coordinator schedules closures on a run's tasks. Its methods may be called concurrently.
type Coordinator struct {
	queue queue
	name  string // this client's name in the queue

	ctx    context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup
	// one serialises Schedule, Join and Done. While Join waits, so does Schedule.
	one chan struct{}

	mu sync.Mutex
	// unsent holds the closures that are not in a request yet, and sending counts those that
	// are. room is the queue's free capacity.
	unsent        []*RemoteValue
	sending, room int
	batch, call   uint64
	// open holds the closures in the queue, by ID; early holds outcomes that arrived before
	// their closure's ID; taken counts the outcomes received.
	open     map[uint64]*RemoteValue
	early    map[uint64]closure.Outcome
	taken    uint64
	taking   bool // a take request is in flight
	released []uint64
	// raised is the error that the next call returns. broken is why nothing more can be
	// scheduled.
	raised, broken error
	changed        chan struct{} // closed when any of these changes
}

// queue is a closurequeue.Client.
type queue interface {
	ID() string
	Status(ctx context.Context) (closure.QueueStatus, error)
	Schedule(ctx context.Context, r closure.ScheduleRequest) (closure.ScheduleAnswer, error)
	Join(ctx context.Context, r closure.WaitRequest) (closure.WaitAnswer, error)
	Take(ctx context.Context, r closure.TakeRequest) (closure.TakeAnswer, error)
}

// closePatience limits how long Close waits for the scheduled closures to enter the queue.
const closePatience = 2 * time.Second

// New attaches to a run's queue, creating it if necessary. It does not wait for tasks: closures
// stay queued until tasks serve.
func New(ctx context.Context, run *starter.Run) (*Coordinator, error) {
	q, err := run.Calls(ctx)
	if err != nil {
		return nil, err
	}
	opened, err := q.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return attach(q, opened.Room), nil
}

func attach(q queue, room int) *Coordinator {
	c := &Coordinator{
		queue: q, name: rand.Text(), one: make(chan struct{}, 1), room: room,
		open: map[uint64]*RemoteValue{}, early: map[uint64]closure.Outcome{}, changed: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.loops.Go(c.send)
	c.loops.Go(c.take)
	return c
}

// Close detaches from the queue. It waits up to two seconds for the scheduled closures to enter
// the queue, where they continue. They may not get there if the queue is full or the server is
// away; to make sure, call Flush.
func (c *Coordinator) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closePatience)
	defer cancel()
	_ = c.Flush(ctx)
	c.cancel()
	c.fail(errors.New("the coordinator was closed"))
	c.loops.Wait()
}

// Flush waits until all scheduled closures are in the queue.
func (c *Coordinator) Flush(ctx context.Context) error {
	err := c.await(ctx, func() bool { return len(c.unsent)+c.sending == 0 || c.broken != nil })
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
// If a previously scheduled closure has failed, Schedule returns its error, does not schedule
// this closure, and cancels those not called yet.
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
		return c.raised != nil || c.broken != nil || len(c.unsent)+c.sending < max(1, min(c.room, 2*closure.MaxBatch))
	}); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.tell(); err != nil {
		return nil, err
	}
	c.unsent = append(c.unsent, v)
	c.change()
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
	if err := c.Flush(ctx); err != nil {
		return false, err
	}
	c.mu.Lock()
	err = c.tell()
	c.call++
	r := closure.WaitRequest{Client: c.name, Call: c.call, Poll: poll}
	c.mu.Unlock()
	if err != nil {
		return false, err
	}
	a, err := c.queue.Join(ctx, r)
	if err != nil {
		return false, err
	}
	if a.Raised != nil || a.Done {
		// The queue counts a closure as finished slightly earlier.
		err = c.await(ctx, func() bool { return len(c.open) == 0 || c.broken != nil })
	}
	if a.Raised != nil {
		return false, a.Raised
	}
	return a.Done, err
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

// change wakes all waiting calls. c.mu must be held.
func (c *Coordinator) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// fail fails everything that is waiting.
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
	c.unsent = nil
	clear(c.open)
	c.change()
}
