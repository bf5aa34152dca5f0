// Package memoryqueue is a run's call queue for tests: its rules, and a host that calls functions in
// this process.
package memoryqueue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
)

// Function is called for closures, with resource values in their arguments.
type Function func(ctx context.Context, args []any, kwargs map[string]any) (any, error)

// slots is how many closures the only host calls at a time. There are twice as many batches.
const slots = 4

// Queue is a queue of closures.
type Queue struct {
	functions map[string]Function

	mu      sync.Mutex
	machine *rules.Queue
	changed chan struct{}
	asked   []closure.SyncRequest
	cancels map[int]context.CancelFunc
	calls   map[string]int
	built   map[uint64]any
}

// New returns an empty queue for size waiting closures, or the default number if it is 0.
func New(size int, functions map[string]Function) *Queue {
	q := &Queue{
		functions: functions, changed: make(chan struct{}), cancels: map[int]context.CancelFunc{}, calls: map[string]int{}, built: map[uint64]any{},
	}
	q.machine = rules.New(rules.ConfigOf(closure.QueueInput{QueueSize: size}))
	q.machine.Serving(closure.ServingMessage{Host: "a", Queue: "a", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: slots}}})
	return q
}

// ID returns a workflow ID.
func (*Queue) ID() string { return "queue" }

// Status returns the queue's status.
func (q *Queue) Status(context.Context) (closure.QueueStatus, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.machine.Status(), nil
}

// Sync answers a program.
func (q *Queue) Sync(ctx context.Context, r closure.SyncRequest) (closure.SyncAnswer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked = append(q.asked, r)
	q.machine.Now(time.Now())
	call := q.machine.Sync(r)
	q.change()
	for !call.Ready() {
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		q.mu.Lock()
		if ctx.Err() != nil {
			return closure.SyncAnswer{}, ctx.Err()
		}
	}
	a, err := call.Answer()
	if errors.Is(err, rules.ErrEnded) {
		err = closurequeue.ErrRunEnded
	}
	return a, err
}

// Asked returns the received requests.
func (q *Queue) Asked() []closure.SyncRequest {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.asked)
}

// change carries out the rules' decisions, and wakes waiting callers.
func (q *Queue) change() {
	for _, a := range q.machine.Actions() {
		if a.Cancel {
			q.cancels[a.Batch.Number]()
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		q.cancels[a.Batch.Number] = cancel
		go q.run(ctx, a.Batch.Number, q.machine.Input(a.Batch))
	}
	close(q.changed)
	q.changed = make(chan struct{})
}

// run calls a batch's closures.
func (q *Queue) run(ctx context.Context, number int, in closure.Batch) {
	var out closure.BatchResult
	for _, c := range in.Closures {
		if ctx.Err() == nil {
			out.Outcomes = append(out.Outcomes, q.call(ctx, c, in.Resources))
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range in.Released {
		delete(q.built, id)
	}
	q.machine.BatchEnded(number, out)
	q.change()
}

func (q *Queue) call(ctx context.Context, c closure.Closure, resources []closure.Resource) closure.Outcome {
	out := closure.Outcome{ID: c.ID, Task: "worker-0"}
	f := q.functions[c.Function]
	if f == nil {
		out.Kind, out.Error = closure.OutcomeError, &closure.Error{Kind: closure.ErrUnknownFunction, Message: "no function " + c.Function}
		return out
	}
	q.mu.Lock()
	q.calls[c.Function]++
	q.mu.Unlock()
	var args []any
	var kwargs map[string]any
	_ = json.Unmarshal(c.Args, &args)
	_ = json.Unmarshal(c.Kwargs, &kwargs)
	for i, a := range args {
		object, _ := a.(map[string]any)
		id, ok := object[closure.ResourceKey].(float64)
		if !ok {
			continue
		}
		value, err := q.build(ctx, resources[slices.IndexFunc(resources, func(r closure.Resource) bool { return r.ID == uint64(id) })])
		if err != nil {
			out.Kind, out.Error = closure.OutcomeInput, &closure.Error{
				Kind: closure.ErrInput, Message: fmt.Sprintf("Input has an error, the original exception is %s, error message is %s.", err, err),
			}
			return out
		}
		args[i] = value
	}
	value, err := f(ctx, args, kwargs)
	var failed *closure.Error
	switch {
	case err == nil:
		out.Value, _ = json.Marshal(value)
	case errors.As(err, &failed):
		out.Kind, out.Error = closure.OutcomeError, failed
	default:
		out.Kind = closure.OutcomeCancelled
	}
	return out
}

func (q *Queue) build(ctx context.Context, r closure.Resource) (any, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if value, ok := q.built[r.ID]; ok {
		return value, nil
	}
	q.calls[r.Function]++
	var args []any
	_ = json.Unmarshal(r.Args, &args)
	value, err := q.functions[r.Function](ctx, args, nil)
	if err == nil {
		q.built[r.ID] = value
	}
	return value, err
}

// End closes the queue with its run.
func (q *Queue) End(over string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.machine.RunEnded(over)
	for _, cancel := range q.cancels {
		cancel()
	}
	q.change()
}

// Called returns how often a function was called.
func (q *Queue) Called(function string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls[function]
}

// Resources counts the defined resources, and those that the host has built.
func (q *Queue) Resources() (known, built int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.machine.Resources), len(q.built)
}

// Counts returns the queue's counts.
func (q *Queue) Counts() closure.QueueCounts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.machine.Status().Counts
}
