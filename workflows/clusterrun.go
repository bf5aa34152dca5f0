package workflows

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// ClusterRun runs a cluster to completion. The input is a [spec.RunSpec] as JSON, which ClusterRun
// decodes strictly: a misspelt field fails the run immediately instead of being ignored. A failed
// run returns an ApplicationError with a type from package spec, and a cancelled run a
// CanceledError; both carry the [spec.RunResult] in their details.
//
// Only a workflow that continues as new passes resumption.
func ClusterRun(ctx workflow.Context, input, resumption converter.RawValue) (*spec.RunResult, error) {
	return runCluster(ctx, input, resumption, maxOwn)
}

// runCluster is ClusterRun, but starts TaskGroups for more than groupsAbove simultaneous launches.
func runCluster(ctx workflow.Context, input, resumption converter.RawValue, groupsAbove int) (*spec.RunResult, error) {
	for _, v := range []converter.RawValue{input, resumption} {
		if key := spec.MissingKey(v.Payload().GetMetadata()); key != nil {
			if workflow.IsReplaying(ctx) || workflow.GetInfo(ctx).ContinuedExecutionRunID != "" {
				panic(key) // a worker that has the key continues the run
			}
			return nil, key
		}
	}
	var from *Resumption
	if p := resumption.Payload(); p != nil {
		if err := converter.GetDefaultDataConverter().FromPayload(p, &from); err != nil {
			return nil, err
		}
	}
	s, err := decode(input)
	if err != nil {
		refused := resultOfRefusal(err)
		noteEnd(ctx, refused, 0)
		// Install a query handler, so that a later status query returns the reason.
		why := spec.Status{State: spec.RunEnded, Tasks: []spec.TaskStatus{}, Result: refused}
		if err := answerStatusBy(ctx, func() (spec.Status, error) { return why, nil }); err != nil {
			return nil, err
		}
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrInvalidRunSpec, nil)
	}
	noteFacts(ctx, s)
	r := newRun(ctx, s.WithDefaults(), from)
	r.patient = s.PlacementTimeout == nil
	r.groupsAbove = groupsAbove
	r.inputBytes = len(input.Payload().GetData())
	if err := r.register(ctx); err != nil {
		return nil, err
	}
	result, err := r.run(ctx)
	switch {
	case r.next != nil:
		next, err := converter.GetDefaultDataConverter().ToPayload(r.next)
		if err != nil {
			return nil, err
		}
		return nil, workflow.NewContinueAsNewError(ctx, workflow.GetInfo(ctx).WorkflowType.Name, input, converter.NewRawValue(next))
	case r.result != nil:
		noteEnd(ctx, r.result, r.restarts)
	case r.invalid != nil:
		noteEnd(ctx, resultOfRefusal(r.invalid), 0)
	}
	return result, err
}

func decode(input converter.RawValue) (*spec.RunSpec, error) {
	p := input.Payload()
	if p == nil {
		return nil, &spec.InvalidSpecError{Problems: []spec.Problem{{
			Message: "the run has no input", Remedy: "pass a run spec as JSON",
		}}}
	}
	if e := string(p.GetMetadata()[converter.MetadataEncoding]); e != converter.MetadataEncodingJSON {
		return nil, &spec.InvalidSpecError{Problems: []spec.Problem{{
			Message: fmt.Sprintf("the input is encoded as %q", e), Remedy: "pass a run spec as JSON",
		}}}
	}
	s, err := spec.Decode(p.GetData())
	if err != nil {
		return nil, err
	}
	return s, nil
}

// clusterRun is one run. Each part makes one kind of decision, and all share the state.
type clusterRun struct {
	*runState
	placer   *placer    // reserves hosts for the tasks
	fleet    *fleetTalk // exchanges messages with the fleet
	calls    *hostCalls // sends requests to hosts
	releaser *releaser  // gives hosts back
	handover *handover  // continues the run in another execution
	report   *reporter  // the status, for users
	notifier *notifier  // sends notices
}

type (
	placer struct {
		*runState
		fleet *fleetTalk
		calls *hostCalls
	}
	fleetTalk struct {
		*runState
		placer *placer
	}
	hostCalls struct{ *runState }
	releaser  struct{ *runState }
	handover  struct {
		*runState
		placer *placer
	}
	reporter struct {
		*runState
		placer *placer
	}
)

type runState struct {
	spec *spec.RunSpec
	// sized is the spec with this generation's tasks; see [spec.RunSpec.Sized].
	sized   *spec.RunSpec
	machine *lifecycle.Machine
	queue   string // the workflow's queue; the hosts' queues are named after it

	hosts     []*host
	placed    map[string]*host  // by task name
	addresses map[string]string // by task name
	// former lists the hosts of earlier generations that the group no longer uses.
	former []*host
	// shipped lists the hosts that have already received the run's files, the latest last.
	shipped []spec.HostService
	// lost holds the queues of hosts that were lost while they ran a task.
	lost map[string]bool
	// absent holds the queues of hosts that the run has given up because they did not return in
	// time. They have not answered since.
	absent map[string]bool
	// draining lists the names of hosts that the group must leave.
	draining map[string]bool
	// answers holds the fleet's unread answers.
	answers []fleet.Answer
	// groupsAbove is the maximum number of simultaneous launches without groups.
	groupsAbove int
	// inputBytes is the size of the spec as received.
	inputBytes int
	// shared counts the values that this execution has shared with hosts.
	shared int
	// queued is the time of the first request to the fleet; the run's age counts from it.
	queued time.Time
	// patient reports whether the run waits for hosts without a time limit.
	patient bool
	// unsettled holds the queues of hosts that did not report on a task of the last generation.
	unsettled map[string]bool
	// heard maps a host's queue to the last time that the server could have answered the host for a
	// task that has ended.
	heard map[string]time.Time
	// bounds are the two bounds of the generation, or nil.
	bounds *hostapi.Bounds
	// begins is this execution's initial placement.
	begins placement
	// next is set if the run is to continue as new.
	next *Resumption
	// began is the run's first execution. It identifies the run to hosts and the fleet, even after
	// the workflow is reset.
	began string
	// execution counts the executions that have continued the run with its tasks.
	execution int
	// requests counts the requests that this execution has accepted, and sending the notices in
	// transit.
	requests, sending int
	// leaving is the time when the run started to prepare its move to another execution. awaiting
	// reports whether a coroutine waits for the last request to return.
	leaving  time.Time
	awaiting bool

	// events carries the events of requests and finished controls. Everything else wakes the
	// selector directly.
	events   workflow.Channel
	selector workflow.Selector
	launches map[string]*launch
	timers   map[lifecycle.Timer]workflow.CancelFunc

	// stopPlacing cancels the placement, and is nil once the placement is over. unplacedWhy is set
	// if a request canceled it.
	stopPlacing workflow.CancelFunc
	unplacedWhy string

	started time.Time
	// limitsFrom is the start time for timeout and max_run_time: the start of the first
	// generation, or of the first one after a return to the queue. pendingSince is the time of
	// that return, and is reset once the tasks are placed.
	limitsFrom, pendingSince time.Time
	output                   []string
	// outputBytes is the size of output.
	outputBytes int
	leftOut     []string // tasks with values that a host has omitted
	result      *spec.RunResult
	restarts    int // of all tasks, once there is a result
	// invalid is set instead of result when a host refused the spec.
	invalid error
}

func newRun(ctx workflow.Context, s *spec.RunSpec, from *Resumption) *clusterRun {
	state := &runState{
		spec:      s,
		sized:     s,
		machine:   lifecycle.New(s, s.TaskList()),
		queue:     workflow.GetInfo(ctx).TaskQueueName,
		began:     cmp.Or(workflow.GetInfo(ctx).OriginalRunID, workflow.GetInfo(ctx).WorkflowExecution.RunID),
		lost:      map[string]bool{},
		absent:    map[string]bool{},
		draining:  map[string]bool{},
		unsettled: map[string]bool{},
		heard:     map[string]time.Time{},
		placed:    map[string]*host{},
		addresses: map[string]string{},
		events:    workflow.NewBufferedChannel(ctx, 1000),
		selector:  workflow.NewSelector(ctx),
		launches:  map[string]*launch{},
		timers:    map[lifecycle.Timer]workflow.CancelFunc{},
	}
	pl := &placer{runState: state, calls: &hostCalls{state}}
	pl.fleet = &fleetTalk{state, pl}
	r := &clusterRun{
		runState: state, placer: pl, fleet: pl.fleet, calls: pl.calls,
		releaser: &releaser{state}, handover: &handover{state, pl}, report: &reporter{state, pl},
		notifier: &notifier{state},
	}
	if from != nil {
		r.resume(from)
	}
	return r
}

// run carries out the run from reservation to result. It uses a disconnected context because the
// workflow's cancellation is an ordinary event.
func (r *clusterRun) run(ctx workflow.Context) (*spec.RunResult, error) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	if r.execution > 0 {
		r.step(free, lifecycle.Resumed{Elapsed: r.elapsed(free)})
	}
	r.fleet.listen(free)
	if r.execution > 0 && !r.machine.Placing() {
		r.calls.tellAgain(free)
	} else {
		r.startPlacing(free, r.begins)
	}
	// This is not a case of the selector, because a closed channel would always be ready.
	workflow.Go(free, func(free workflow.Context) {
		ctx.Done().Receive(free, nil)
		r.events.Send(free, request{event: lifecycle.Cancel{}})
	})
	r.selector.AddReceive(r.events, func(c workflow.ReceiveChannel, _ bool) {
		var q request
		c.Receive(free, &q)
		r.serve(free, q)
	})
	r.selector.AddReceive(workflow.GetSignalChannel(free, spec.SignalEnded), func(c workflow.ReceiveChannel, _ bool) {
		var ends []lifecycle.TaskEnded
		c.Receive(free, &ends)
		r.endedAll(free, ends)
	})
	for {
		for r.result == nil && r.invalid == nil && (r.next == nil || r.events.Len() > 0 || r.sending > 0) {
			if !r.selector.HasPending() { // this takes some time for many tasks
				r.report.describe(free)
			}
			if r.handover.handOver(free) {
				break
			}
			r.selector.Select(free)
		}
		r.report.describe(free)
		if err := r.finishRequests(free); err != nil {
			return nil, err
		}
		if r.result != nil || r.invalid != nil {
			r.next = nil
			break
		}
		if r.next != nil && r.machine.Notice() != nil {
			r.next.Machine = r.machine.State() // the event arrived after the group stopped
		}
		if ctx.Err() == nil {
			break
		}
		// The run was cancelled just before it continued as new.
		r.next = nil
		r.step(free, lifecycle.Cancel{})
	}
	if r.invalid != nil {
		for _, a := range r.machine.Refused(resultOfRefusal(r.invalid)) {
			r.carryOut(free, a)
		}
	}
	if r.next == nil {
		r.fleet.leaveFleet(free)
	}
	if err := workflow.Await(free, func() bool { return r.sending == 0 }); err != nil {
		return nil, err
	}
	if r.next != nil {
		return nil, nil
	}
	if r.invalid != nil {
		return nil, r.invalid
	}
	return resultOrError(r.result)
}

// begin handles the placement's result, which is the machine's first event.
func (r *clusterRun) begin(ctx workflow.Context, placed error) {
	stopPlacing := r.stopPlacing
	r.stopPlacing = nil
	defer stopPlacing()
	var skipped *skippedError
	switch {
	case isInvalid(placed) && r.machine.Generation() == 0:
		r.releaser.giveBack(ctx)
		r.invalid = placed
	case r.unplacedWhy != "":
		// A request canceled the placement, which may nevertheless have succeeded.
		r.step(ctx, lifecycle.Cancel{Reason: r.unplacedWhy})
	case placed == nil:
		now := workflow.Now(ctx)
		if r.started.IsZero() {
			r.started = now
			workflow.GetMetricsHandler(ctx).Timer(spec.MetricQueueWait).Record(now.Sub(workflow.GetInfo(ctx).WorkflowStartTime))
		}
		if r.limitsFrom.IsZero() {
			r.limitsFrom = now
		}
		r.pendingSince = time.Time{}
		r.report.noteGroup(ctx)
		r.step(ctx, lifecycle.Begin{Elapsed: r.elapsed(ctx), Tasks: r.placer.size()})
	case errors.As(placed, &skipped):
		r.step(ctx, lifecycle.PlacementFailed{Message: skipped.why, Skipped: true})
	default:
		r.step(ctx, lifecycle.PlacementFailed{Message: reasonOf(placed)})
	}
}

// elapsed returns the time that counts toward the run's time limits.
func (r *runState) elapsed(ctx workflow.Context) time.Duration {
	if r.limitsFrom.IsZero() {
		return 0
	}
	return workflow.Now(ctx).Sub(r.limitsFrom)
}

func isInvalid(err error) bool {
	var app *temporal.ApplicationError
	return errors.As(err, &app) && app.Type() == spec.ErrInvalidRunSpec
}

// step passes an event to the machine and carries out its actions.
func (r *clusterRun) step(ctx workflow.Context, e lifecycle.Event) {
	for _, a := range r.launchAll(ctx, r.machine.Step(e)) {
		r.carryOut(ctx, a)
	}
}

func (r *clusterRun) carryOut(ctx workflow.Context, a lifecycle.Action) {
	switch a := a.(type) {
	case lifecycle.HostRequest:
		r.calls.answer(ctx, r.calls.reach(a), nil, nil)
	case lifecycle.Detached:
		r.carryOut(ctx, a.Action)
	case lifecycle.Launch:
		r.launch(ctx, a)
	case lifecycle.RestartGroup:
		r.regroup(ctx, a)
	case lifecycle.StopPlacing:
		if r.stopPlacing != nil {
			r.stopPlacing()
		}
	case lifecycle.Capture:
		r.calls.capture(ctx, a)
	case lifecycle.Stop:
		r.stop(ctx, a)
	case lifecycle.SealTasks:
		r.calls.answer(ctx, r.calls.ask(hostapi.Name(hostapi.Host.SealTasks), a.Tasks, tasksInput), nil, nil)
	case lifecycle.StopSilentTasks:
		r.calls.answer(ctx, r.calls.ask(hostapi.Name(hostapi.Host.StopSilentTasks), a.Tasks, tasksInput), nil, nil)
	case lifecycle.NotifyStopping:
		r.calls.tell(ctx, a.Stopping)
	case lifecycle.StartTimer:
		r.startTimer(ctx, a)
	case lifecycle.StopTimer:
		r.stopTimer(a.Timer)
	case lifecycle.Release:
		r.release(ctx)
	case lifecycle.Notify:
		if a.Result != nil && r.result != nil {
			a.Result = r.result // it has a message
		}
		r.notifier.notify(ctx, a)
	case lifecycle.Finish:
		result := a.Result
		result.Output = r.output
		for _, task := range r.leftOut {
			result.WithoutValue(task)
		}
		result.Message = outcome.Sentence(&result)
		r.result, r.restarts = &result, a.Restarts
	}
}

func (r *clusterRun) startTimer(ctx workflow.Context, a lifecycle.StartTimer) {
	ctx, cancel := workflow.WithCancel(ctx)
	r.timers[a.Timer] = cancel
	timer := workflow.NewTimerWithOptions(ctx, a.After, workflow.TimerOptions{Summary: string(a.Timer)})
	r.selector.AddFuture(timer, func(f workflow.Future) {
		if f.Get(ctx, nil) == nil {
			r.step(ctx, lifecycle.TimerFired{Timer: a.Timer})
		}
	})
}

func (r *clusterRun) stopTimer(t lifecycle.Timer) {
	if cancel, ok := r.timers[t]; ok {
		delete(r.timers, t)
		cancel()
	}
}

// resultOrError converts a run's result to the result or error of its workflow.
func resultOrError(result *spec.RunResult) (*spec.RunResult, error) {
	switch result.Verdict {
	case spec.VerdictSucceeded:
		return result, nil
	case spec.VerdictCancelled, spec.VerdictPreempted:
		return nil, temporal.NewCanceledError(result)
	}
	return nil, temporal.NewApplicationErrorWithOptions(result.Message, result.ErrorType,
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{result}})
}
