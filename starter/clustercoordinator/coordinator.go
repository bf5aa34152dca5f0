package clustercoordinator

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"github.com/clusterrun/clusterrun/activities/closurequeue"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/closure"
)

// Coordinator schedules closures on the tasks of a run. Its methods may be called at
// the same time.
type Coordinator struct {
	queue *closurequeue.Queue
	// one is held by whoever schedules or joins: while a join waits, schedule does,
	// too. Detached closures are no concern of a join.
	one chan struct{}
	// tasks knows the tasks of the run that closures may ask for.
	tasks tasks
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
	c := Of(q)
	c.KnowTasks(run.TaskNames)
	return c, nil
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

// Queue is the client of the queue, for what is beyond the seed: cancelling, pausing,
// values by ID.
func (c *Coordinator) Queue() *closurequeue.Queue { return c.queue }

// Call is what to call. Function is the name that tasks have registered.
type Call struct {
	Function string
	Args     []any
	Kwargs   map[string]any
	Options  *closure.Options
}

// Schedule has some task call a function, and returns a handle on its value at once.
// While the queue is full it waits. Arguments are values that JSON has, and
// [PerWorkerValues].
//
// If a closure that was scheduled before has failed, its error is returned, this
// closure is not scheduled, and those not called yet are cancelled.
func (c *Coordinator) Schedule(ctx context.Context, function string, args ...any) (*RemoteValue, error) {
	return c.ScheduleCall(ctx, Call{Function: function, Args: args})
}

// ScheduleCall is Schedule with everything there is to say.
func (c *Coordinator) ScheduleCall(ctx context.Context, call Call) (*RemoteValue, error) {
	what, err := call.closure()
	if err != nil {
		return nil, err
	}
	if err := c.CheckTask(ctx, call); err != nil {
		return nil, err
	}
	if what.Options == nil || !what.Options.Detached {
		leave, err := c.enter(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	r, err := c.queue.Schedule(ctx, what)
	runtime.KeepAlive(call) // so that no resource among the arguments is released before
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
	what, err := Call{Function: function, Args: args}.closure()
	if err != nil {
		return PerWorkerValues{}, err
	}
	id, err := c.queue.CreateResource(ctx, closure.Resource{Function: what.Function, Args: what.Args, Kwargs: what.Kwargs})
	if err != nil {
		return PerWorkerValues{}, err
	}
	return newPerWorkerValues(c.queue, id), nil
}

// closure is a call as it is sent.
func (c Call) closure() (closure.Closure, error) {
	out := closure.Closure{Function: c.Function, Options: c.Options}
	var resources resources
	for _, part := range []struct {
		name  string
		value any
		empty bool
		to    *json.RawMessage
	}{
		{"args", c.Args, len(c.Args) == 0, &out.Args},
		{"kwargs", c.Kwargs, len(c.Kwargs) == 0, &out.Kwargs},
	} {
		if part.empty {
			continue
		}
		b, err := json.Marshal(part.value)
		if err != nil {
			return out, fmt.Errorf("%s of %s: %w", part.name, c.Function, remoteFirst(err))
		}
		if err := resources.in(b); err != nil {
			return out, err
		}
		*part.to = b
	}
	out.Resources = resources.ids
	return out, nil
}
