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

// Coordinator schedules closures on the tasks of a run. Its methods may be called at
// the same time.
type Coordinator struct {
	queue *closurequeue.Queue
	// one is held by whoever schedules or joins: while a join waits, schedule does,
	// too. Detached closures are no concern of a join.
	one chan struct{}
	// patience is how long Close waits for the queue to take what was scheduled.
	patience time.Duration
}

// closePatience is that of every coordinator.
const closePatience = 2 * time.Second

// New attaches to the queue of a run, and makes it if there is none. It waits
// for nothing: closures wait in the queue until tasks serve.
func New(ctx context.Context, run *starter.Run) (*Coordinator, error) {
	q, err := run.Closures(ctx)
	if err != nil {
		return nil, err
	}
	return Of(q), nil
}

// Of coordinates by a client of a queue that is there, which is closed with it.
func Of(q *closurequeue.Queue) *Coordinator {
	return &Coordinator{queue: q, one: make(chan struct{}, 1), patience: closePatience}
}

// Close detaches from the queue. What was scheduled goes on: it gets into the queue
// before, if that takes it within two seconds. A full queue, and a server that is
// away, may not: who has to know calls [closurequeue.Queue.Flush]. Per-worker resources
// that were created here are released.
func (c *Coordinator) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), c.patience)
	defer cancel()
	_ = c.queue.Flush(ctx)
	c.queue.Close()
}

// Queue returns the client of the queue, for what is beyond the seed: cancelling, pausing,
// values by ID.
func (c *Coordinator) Queue() *closurequeue.Queue { return c.queue }

// Schedule has some task call a function, and returns a handle on its value at once.
// While the queue is full it waits. Arguments are values that JSON has, and
// [PerWorkerValues].
//
// If a closure that was scheduled before has failed, its error is returned, this
// closure is not scheduled, and those not called yet are cancelled.
func (c *Coordinator) Schedule(ctx context.Context, function string, args ...any) (*RemoteValue, error) {
	return c.ScheduleWith(ctx, closure.Options{}, function, args, nil)
}

// ScheduleWith is Schedule with options, and with arguments by name.
func (c *Coordinator) ScheduleWith(ctx context.Context, o closure.Options, function string, args []any, kwargs map[string]any) (*RemoteValue, error) {
	what, err := newClosure(function, args, kwargs)
	if err != nil {
		return nil, err
	}
	if o != (closure.Options{}) {
		what.Options = &o
	}
	if !o.Detached {
		leave, err := c.enter(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	r, err := c.queue.Schedule(ctx, what)
	// So that no resource among the arguments is released before.
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

// Join waits until everything scheduled has been called, and returns the first error.
func (c *Coordinator) Join(ctx context.Context) error {
	leave, err := c.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return c.queue.Join(ctx)
}

// Done says whether everything scheduled has been called. It returns the first error
// like Join.
func (c *Coordinator) Done(ctx context.Context) (bool, error) {
	leave, err := c.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	return c.queue.Done(ctx)
}

// CreatePerWorkerResource has every process that serves call a function once, when
// the first closure that has the resource among its arguments is called there, and
// keep what it returns for all of them. A process that is started again builds it
// again. They drop it when it was released, which [PerWorkerValues.Release]
// does, Close, or the garbage collector when nothing here refers to the values any more;
// what is written in Go and has a method Close is closed then.
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

// newClosure writes arguments as JSON, and notes the resources among them.
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
