package queues

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/closures/rules"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Run is the run of the queue.
var Run = spec.RunRef{WorkflowID: "iris", RunID: "first-execution"}

// Server has one queue, and calls its closures itself.
type Server struct {
	client.Client // for the methods that are not used

	t testing.TB

	mu sync.Mutex
	// size is the size of the queue. If it is 0, the client that opens the queue chooses it.
	size      int
	changed   chan struct{} // closed and replaced after each change
	functions map[string]Function

	config     rules.Config
	machine    *rules.Queue
	executions []*execution
	held       map[uint64]*held
	leases     []*lease
	built      map[uint64]*built
	// calls, updates and answers count by name.
	calls, updates, answers map[string]int
	// lose is the number of answers to lose, by the name of the update. If away is true, all
	// answers are lost, and no request arrives.
	lose map[string]int
	away bool
	// leaveOut reports whether events are left out for the next reader of the history.
	leaveOut bool
	// still reports whether changes are hidden from clients that follow the history.
	still bool
	reads int
}

// New returns a server without a queue. A client opens it.
func New(t testing.TB, functions map[string]Function) *Server {
	s := &Server{
		t: t, changed: make(chan struct{}), functions: functions,
		held: map[uint64]*held{}, built: map[uint64]*built{},
		calls: map[string]int{}, updates: map[string]int{}, answers: map[string]int{}, lose: map[string]int{},
	}
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, h := range s.held {
			h.cancel()
		}
	})
	return s
}

// Limit bounds how many closures may be queued, in a queue that is not open yet.
func (s *Server) Limit(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = size
}

// Calls returns the number of calls of a function.
func (s *Server) Calls(function string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[function]
}

// Updates returns the number of updates with a name that have arrived.
func (s *Server) Updates(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updates[name]
}

// Built are the per-worker resources that the tasks hold, sorted.
func (s *Server) Built() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.built))
}

// Answers returns the number of updates with a name that were answered.
func (s *Server) Answers(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers[name]
}

// Waiting returns the number of unanswered requests to schedule.
func (s *Server) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updates[closure.UpdateSchedule] - s.answers[closure.UpdateSchedule]
}

// Counts returns the counts of the queue.
func (s *Server) Counts() closure.QueueCounts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.machine.Status().Counts
}

// Lose loses the next answers to updates with a name.
func (s *Server) Lose(update string, answers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose[update] += answers
}

// Away makes the server unreachable, which ends waiting requests, or reachable again.
func (s *Server) Away(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
	s.wake()
}

// LeaveOut leaves events out of the history for the next reader.
func (s *Server) LeaveOut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveOut = true
}

// Reads returns the number of times that the history of an execution was read to its end.
func (s *Server) Reads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// Still hides changes from clients that follow the history, or shows them again.
func (s *Server) Still(still bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.still = still
	s.wake()
}

// Has adds a function that the tasks serve.
func (s *Server) Has(name string, f Function) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.functions[name] = f
	s.serve()
	s.pump()
}

// ContinueAsNew continues the queue in another execution.
func (s *Server) ContinueAsNew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.Suspend(true)
	s.pump()
	snapshot, err := s.machine.Snapshot()
	if err != nil {
		s.t.Error(err)
		return
	}
	s.newExecution()
	s.leases = nil // the next execution takes over their closures
	s.machine = rules.Restore(s.config, snapshot)
	s.pump()
}

// Forget removes all executions but the latest.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.executions[:len(s.executions)-1] {
		x.forgotten = true
	}
	s.wake()
}

// End ends the queue with its run.
func (s *Server) End(over string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine.RunEnded(over)
	s.pump()
	s.last().close(enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED)
	s.wake()
}

// wake wakes all that wait. mu must be held, as for all below that are not of
// the client.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

var (
	errAway = serviceerror.NewUnavailable("the server is away")
	errNone = serviceerror.NewNotFound("there is no such workflow")
)

// check returns the reason if a request cannot be answered.
func (s *Server) check(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.away:
		return errAway
	case s.machine == nil:
		return errNone
	}
	return nil
}

// ExecuteWorkflow makes the queue.
func (s *Server) ExecuteWorkflow(ctx context.Context, _ client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx); !errors.Is(err, errNone) {
		return nil, err
	}
	in := args[0].(closure.QueueInput)
	if s.size != 0 {
		in.QueueSize = s.size
	}
	s.config = rules.ConfigOf(in)
	s.machine = rules.New(s.config)
	s.newExecution()
	s.serve()
	return nil, nil
}

// UpdateWorkflow sends an update to the queue.
func (s *Server) UpdateWorkflow(ctx context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	s.updates[o.UpdateName]++
	x := s.last()
	if x.status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil, serviceerror.NewNotFound("workflow execution already completed")
	}
	answer, err := s.request(o)
	s.pump()
	for err == nil {
		var ready bool
		var value any
		if ready, value, err = answer(); ready || err != nil {
			if err == nil && s.lose[o.UpdateName] > 0 {
				s.lose[o.UpdateName]--
				return nil, errAway
			}
			s.answers[o.UpdateName]++
			return &updated{value: value, err: err}, nil
		}
		if err = s.await(ctx); err == nil && s.last() != x {
			return nil, serviceerror.NewNotFound("the execution is over")
		}
	}
	if errors.Is(err, errAway) || ctx.Err() != nil {
		return nil, err
	}
	var invalid *spec.InvalidRequestError
	if errors.As(err, &invalid) {
		return &updated{err: temporal.NewApplicationError(err.Error(), spec.ErrInvalidRequest, *invalid)}, nil
	}
	kind := spec.ErrRefused
	if errors.Is(err, rules.ErrWithdrawn) {
		kind = spec.ErrTryAgain
	}
	return &updated{err: temporal.NewApplicationError(err.Error(), kind)}, nil
}

// await waits until something has changed.
func (s *Server) await(ctx context.Context) error {
	changed := s.changed
	s.mu.Unlock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
	s.mu.Lock()
	return s.check(ctx)
}

// request gives the machine a request. Its answer may not be there yet.
func (s *Server) request(o client.UpdateWorkflowOptions) (answer func() (ready bool, value any, err error), err error) {
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(o.Args...)
	if err != nil {
		return nil, err
	}
	switch o.UpdateName {
	case closure.UpdateSchedule:
		r := as[closure.ScheduleRequest](payloads)
		if err := s.machine.CheckSchedule(r); err != nil {
			return nil, err
		}
		return of(s.machine.Schedule(r)), nil
	case closure.UpdateJoin, closure.UpdateDone:
		r := as[closure.WaitRequest](payloads)
		if err := s.machine.CheckWait(r); err != nil {
			return nil, err
		}
		if o.UpdateName == closure.UpdateJoin {
			return of(s.machine.Join(r)), nil
		}
		return of(s.machine.Done(r)), nil
	case closure.UpdateWithdraw:
		a := s.machine.Withdraw(as[closure.WaitRequest](payloads))
		return func() (bool, any, error) { return true, a, nil }, nil
	case closure.UpdateCreateResource:
		a, err := s.machine.CreateResource(as[closure.ResourceRequest](payloads))
		return func() (bool, any, error) { return true, a, nil }, err
	case closure.UpdateReleaseResources:
		r := as[closure.ReleaseRequest](payloads)
		if err := s.machine.CheckRelease(r); err != nil {
			return nil, err
		}
		a := s.machine.ReleaseResources(r)
		return func() (bool, any, error) { return true, a, nil }, nil
	case closure.UpdateCancelClosures:
		a := s.machine.Cancel(as[closure.CancelRequest](payloads))
		return func() (bool, any, error) { return true, a, nil }, nil
	}
	return nil, fmt.Errorf("there is no update %s", o.UpdateName)
}

func as[T any](p *commonpb.Payloads) (v T) {
	if err := converter.GetDefaultDataConverter().FromPayloads(p, &v); err != nil {
		panic(err)
	}
	return v
}

func of[A any](c *rules.Call[A]) func() (bool, any, error) {
	return func() (bool, any, error) {
		if !c.Ready() {
			return false, nil, nil
		}
		a, err := c.Answer()
		return true, a, err
	}
}

// updated is the answer to an update.
type updated struct {
	client.WorkflowUpdateHandle
	value any
	err   error
}

func (u *updated) Get(_ context.Context, to any) error {
	if u.err != nil {
		return u.err
	}
	return convert(u.value, to)
}

func convert(from, to any) error {
	p, err := converter.GetDefaultDataConverter().ToPayloads(from)
	if err != nil {
		return err
	}
	return converter.GetDefaultDataConverter().FromPayloads(p, to)
}

// QueryWorkflow is the status of the queue.
func (s *Server) QueryWorkflow(ctx context.Context, _, _, _ string, _ ...any) (converter.EncodedValue, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	status := s.machine.Status()
	status.Executions = s.ranges()
	p, err := converter.GetDefaultDataConverter().ToPayloads(status)
	return client.NewValue(p), err
}

// DescribeWorkflowExecution is the latest execution.
func (s *Server) DescribeWorkflowExecution(ctx context.Context, _, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	x := s.last()
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: "queue", RunId: x.id}, Status: x.status, HistoryLength: int64(len(x.events)),
	}}, nil
}

// GetWorkflow returns the result of the queue.
func (s *Server) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	return &result{s: s}
}

type result struct {
	client.WorkflowRun
	s *Server
}

func (r *result) Get(_ context.Context, to any) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	return convert(closure.QueueResult{Counts: r.s.machine.Status().Counts, Executions: r.s.ranges()}, to)
}
