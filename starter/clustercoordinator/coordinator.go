package clustercoordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Coordinator schedules closures on the tasks of a run. Its methods may be called concurrently.
type Coordinator struct {
	queue *closurequeue.Queue
	// one is held while Schedule or Join runs: while a join waits, so does schedule.
	one chan struct{}
	// patience bounds the time for which Close waits until the scheduled closures are in the
	// queue.
	patience time.Duration
}

// closePatience is the patience of every coordinator.
const closePatience = 2 * time.Second

// New attaches to the queue of a run, and creates it if there is none. It does not wait for
// tasks: closures wait in the queue until tasks serve.
func New(ctx context.Context, run *starter.Run) (*Coordinator, error) {
	q, err := run.Closures(ctx)
	if err != nil {
		return nil, err
	}
	return Of(q), nil
}

// Of returns a coordinator that uses a client of an existing queue. Close closes the client.
func Of(q *closurequeue.Queue) *Coordinator {
	return &Coordinator{queue: q, one: make(chan struct{}, 1), patience: closePatience}
}

// Close detaches from the queue. It waits at most two seconds until the scheduled closures are
// in the queue, where they continue. They may not get there if the queue is full or the server
// is away; to make sure, call [closurequeue.Queue.Flush]. Close releases the per-worker
// resources that this coordinator created.
func (c *Coordinator) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	_ = c.queue.Flush(ctx)
	c.queue.Close()
}

// Queue returns the client of the queue, for what TensorFlow's coordinator does not offer:
// cancelling, values by ID.
func (c *Coordinator) Queue() *closurequeue.Queue { return c.queue }

// Schedule schedules a call of a function on any task, and returns a handle on its value at
// once. It blocks while the queue is full. Arguments are values that JSON can represent, and
// [PerWorkerValues].
//
// If a closure that was scheduled before has failed, Schedule returns its error, does not
// schedule this closure, and cancels those not called yet.
func (c *Coordinator) Schedule(ctx context.Context, function string, args ...any) (*RemoteValue, error) {
	return c.ScheduleWith(ctx, function, args, nil)
}

// ScheduleWith is like Schedule, but takes named arguments, too.
func (c *Coordinator) ScheduleWith(ctx context.Context, function string, args []any, kwargs map[string]any) (*RemoteValue, error) {
	what, err := newClosure(function, args, kwargs)
	if err != nil {
		return nil, err
	}
	leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	r, err := c.queue.Schedule(ctx, what)
	// This keeps resources among the arguments from being released before.
	runtime.KeepAlive(args)
	runtime.KeepAlive(kwargs)
	if err != nil {
		return nil, err
	}
	return &RemoteValue{r}, nil
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
	leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return c.queue.Join(ctx)
}

// Done reports whether all scheduled closures have been called. It returns the first error, as
// Join does.
func (c *Coordinator) Done(ctx context.Context) (bool, error) {
	leave, err := c.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	return c.queue.Done(ctx)
}

// CreatePerWorkerResource creates a resource in every process that serves: the process calls
// the function once, before it calls the first closure that has the resource among its
// arguments, and keeps its value for all of them. A process that is restarted calls it again.
// Processes drop the value after [PerWorkerValues.Release], after Close, or when the garbage
// collector finds that this program has no reference to the values. If the value is written in
// Go and has a method Close, that is called then.
func (c *Coordinator) CreatePerWorkerResource(ctx context.Context, function string, args ...any) (PerWorkerValues, error) {
	what, err := newClosure(function, args, nil)
	if err != nil {
		return PerWorkerValues{}, err
	}
	id, err := c.queue.CreateResource(ctx, closure.Resource{Function: what.Function, Args: what.Args})
	if err != nil {
		return PerWorkerValues{}, err
	}
	return newPerWorkerValues(c.queue, id), nil
}

// newClosure encodes arguments as JSON, and collects the resources among them.
func newClosure(function string, args []any, kwargs map[string]any) (closure.Closure, error) {
	out := closure.Closure{Function: function}
	var resources resources
	for _, part := range []struct {
		name  string
		value any
		empty bool
		to    *json.RawMessage
	}{
		{"args", args, len(args) == 0, &out.Args},
		{"kwargs", kwargs, len(kwargs) == 0, &out.Kwargs},
	} {
		if part.empty {
			continue
		}
		b, err := json.Marshal(part.value)
		if err != nil {
			return out, fmt.Errorf("%s of %s: %w", part.name, function, remoteFirst(err))
		}
		if err := resources.in(b); err != nil {
			return out, err
		}
		*part.to = b
	}
	out.Resources = resources.ids
	return out, nil
}
