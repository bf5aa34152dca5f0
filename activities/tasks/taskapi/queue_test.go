package taskapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
)

// function is called for closures, with resource values in their arguments.
type function func(ctx context.Context, args []any, kwargs map[string]any) (any, error)

// slotsOfQueue is the number of slots of a [testQueue]'s only host. Its batches are twice that
// size.
const slotsOfQueue = 4

// testQueue is a queue of closures called in this process.
type testQueue struct {
	t         testing.TB
	functions map[string]function

	takes atomic.Uint64 // each is a separate request

	mu      sync.Mutex
	machine *rules.Queue
	changed chan struct{}
	asked   map[string]any // received requests, with their calls
	cancels map[int]context.CancelFunc
	calls   map[string]int
	built   map[uint64]any
}

func newTestQueue(t testing.TB, functions map[string]function) *testQueue {
	q := &testQueue{
		t: t, functions: functions, changed: make(chan struct{}), asked: map[string]any{},
		cancels: map[int]context.CancelFunc{}, calls: map[string]int{}, built: map[uint64]any{},
	}
	q.limit(0)
	t.Cleanup(func() { q.end("the test is over") })
	return q
}

// limit recreates the queue with room for size waiting closures.
func (q *testQueue) limit(size int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.machine = rules.New(rules.ConfigOf(closure.QueueInput{QueueSize: size}))
	q.machine.Serving(closure.ServingMessage{Host: "a", Queue: "a", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: slotsOfQueue}}})
}

// Answer answers a program.
func (q *testQueue) Answer(ctx context.Context, operation string, message []byte) (any, *wire.Problem) {
	switch operation {
	case wire.OpSchedule:
		return asking(ctx, q, operation, message, func(r closure.ScheduleRequest) uint64 { return r.Batch }, (*rules.Queue).Schedule)
	case wire.OpJoin:
		return asking(ctx, q, operation, message, func(r closure.WaitRequest) uint64 { return r.Call }, (*rules.Queue).Join)
	case wire.OpTake:
		return asking(ctx, q, operation, message, func(closure.TakeRequest) uint64 { return q.takes.Add(1) }, (*rules.Queue).Take)
	}
	return closure.Opened{}, nil
}

func asking[Q interface{ Validate() error }, A any](
	ctx context.Context, q *testQueue, operation string, message []byte, number func(Q) uint64, do func(*rules.Queue, Q) *rules.Call[A],
) (any, *wire.Problem) {
	var r Q
	err := json.Unmarshal(message, &r)
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return nil, wire.Refused(err)
	}
	var by struct{ Client string }
	_ = json.Unmarshal(message, &by)
	key := fmt.Sprint(operation, " ", by.Client, " ", number(r))
	q.mu.Lock()
	defer q.mu.Unlock()
	call, again := q.asked[key].(*rules.Call[A])
	if !again {
		q.machine.Now(time.Now())
		call = do(q.machine, r)
		q.asked[key] = call
		q.change()
	}
	for !call.Ready() {
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		q.mu.Lock()
		if ctx.Err() != nil {
			return nil, &wire.Problem{Code: wire.CodeInternal, Message: ctx.Err().Error()}
		}
	}
	a, err := call.Answer()
	if err != nil {
		return nil, &wire.Problem{Code: wire.CodeOver, Message: err.Error()}
	}
	return a, nil
}

// change carries out the rules' decisions, and wakes waiting callers.
func (q *testQueue) change() {
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
func (q *testQueue) run(ctx context.Context, number int, in closure.Batch) {
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

func (q *testQueue) call(ctx context.Context, c closure.Closure, resources []closure.Resource) closure.Outcome {
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

func (q *testQueue) build(ctx context.Context, r closure.Resource) (any, error) {
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

// end closes the queue with its run.
func (q *testQueue) end(over string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.machine.RunEnded(over)
	for _, cancel := range q.cancels {
		cancel()
	}
	q.change()
}

// called returns how often a function was called.
func (q *testQueue) called(function string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.calls[function]
}

func (q *testQueue) counts() closure.QueueCounts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.machine.Status().Counts
}

// requests counts the received requests of an operation.
func (q *testQueue) requests(operation string) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for key := range q.asked {
		if key[:len(operation)] == operation {
			n++
		}
	}
	return n
}
