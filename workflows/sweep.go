package workflows

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

// Sweep runs each trial as a separate run. Trials are children that outlive the workflow, so that
// it can continue as new while they run. The server reports when trials started by this execution
// finish; an activity detects the end of earlier executions' trials. Like a run, a failed sweep
// returns an ApplicationError, and a cancelled one a CanceledError, with the result in the details.
func Sweep(ctx workflow.Context, in sweep.Spec, from *sweep.Resumption) (*spec.RunResult, error) {
	trials, err := in.Grid.Parse()
	if err == nil && in.Run == nil {
		err = errors.New("the run of each trial is missing")
	}
	if err == nil {
		err = in.Rules.Check()
	}
	machine := (*sweep.Machine)(nil)
	if err == nil {
		machine = sweep.New(trials.Len(), in.Rules)
	}
	if err == nil && from != nil {
		if machine, err = sweep.Resume(from.Machine, in.Rules); err == nil && machine.Len() != trials.Len() {
			err = fmt.Errorf("the state covers %d trials, but there are %d", machine.Len(), trials.Len())
		}
	}
	if err != nil {
		noteEnd(ctx, resultOfRefusal(err), 0)
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrInvalidRunSpec, nil)
	}
	w := &sweepOf{
		in: in, trials: trials, machine: machine, id: workflow.GetInfo(ctx).WorkflowExecution.ID,
		open: map[int]string{}, interrupted: map[int]bool{}, selector: workflow.NewSelector(ctx),
	}
	if err := answerStatusBy(ctx, func() (spec.Status, error) { return w.status(ctx), nil }); err != nil {
		return nil, err
	}
	if next := w.run(ctx, from); next != nil {
		return nil, workflow.NewContinueAsNewError(ctx, Sweep, in, next)
	}
	if w.invalid != nil {
		noteEnd(ctx, resultOfRefusal(w.invalid), 0)
		return nil, w.invalid
	}
	noteEnd(ctx, w.result, 0)
	return resultOrError(w.result)
}

// sweepOf holds a running sweep's state.
type sweepOf struct {
	in      sweep.Spec
	trials  *sweep.Trials
	machine *sweep.Machine
	id      string
	// open maps the running trials to their first executions. held lists the trials to start next.
	// starting is the number of runs that the server is currently starting, and cancelling the
	// number of open requests to cancel a run.
	open                 map[int]string
	held                 []int
	starting, cancelling int
	// interrupted holds the trials to cancel as soon as the server has started their runs.
	interrupted map[int]bool
	selector    workflow.Selector
	// waits reports whether the sweep waits for earlier runs, and waited whether it has waited, so
	// that its trials need not.
	waits, waited bool
	result        *spec.RunResult
	// invalid is set instead of result if an earlier run does not exist. skipped explains why no
	// trial is started.
	invalid error
	skipped string
}

// run carries out the sweep until it has a result, or returns the state for the next execution. It
// uses a disconnected context because the workflow's cancellation is an ordinary event.
func (w *sweepOf) run(ctx workflow.Context, from *sweep.Resumption) *sweep.Resumption {
	free, _ := workflow.NewDisconnectedContext(ctx)
	cancelled := workflow.NewChannel(free)
	workflow.Go(free, func(free workflow.Context) {
		ctx.Done().Receive(free, nil)
		cancelled.Send(free, nil)
	})
	w.selector.AddReceive(cancelled, func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(free, nil)
		w.step(free, sweep.Cancel{})
	})
	w.selector.AddReceive(workflow.GetSignalChannel(free, spec.SignalStopTrials), func(c workflow.ReceiveChannel, _ bool) {
		var pattern string
		c.Receive(free, &pattern)
		w.step(free, sweep.Stop{Match: sweep.Matching(pattern)})
	})
	w.selector.AddReceive(workflow.GetSignalChannel(free, spec.SignalRetryTrials), func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(free, nil)
		w.step(free, sweep.Retry{Now: workflow.Now(free)})
	})
	if from != nil {
		for _, t := range from.Open {
			w.open[t.Trial] = t.RunID
		}
		for _, trial := range from.Interrupted {
			w.interrupted[trial] = true
		}
		w.check(free, from.Open)
		w.held = from.Held
	}
	if w.mustWait(free, from) {
		w.await(free)
	} else {
		w.step(free, sweep.Begin{Now: workflow.Now(free)})
	}
	for w.result == nil && w.invalid == nil {
		// A cancelled sweep finishes soon, and the next execution would not be cancelled.
		leave := workflow.GetInfo(free).GetContinueAsNewSuggested() && ctx.Err() == nil && !w.waits
		w.startHeld(free, leave)
		if leave && w.starting == 0 && w.cancelling == 0 && w.result == nil && !w.selector.HasPending() {
			return w.resumption(free)
		}
		if w.result == nil {
			w.selector.Select(free)
		}
	}
	return nil
}

// mustWait reports whether the sweep waits for earlier runs before it starts trials.
func (w *sweepOf) mustWait(ctx workflow.Context, from *sweep.Resumption) bool {
	if len(w.in.Run.After) == 0 {
		return false
	}
	if from != nil && (from.Waited || len(from.Open)+len(from.Held) > 0) {
		w.waited = from.Waited
		return false
	}
	return true
}

// await waits for the earlier runs in a coroutine, and then starts the first trials or skips all
// trials.
func (w *sweepOf) await(ctx workflow.Context) {
	w.waits, w.waited = true, true
	w.step(ctx, sweep.Wait{})
	ended := workflow.NewBufferedChannel(ctx, 1)
	workflow.Go(ctx, func(ctx workflow.Context) {
		ended.SendAsync(awaitEarlier(ctx, workflow.GetInfo(ctx).TaskQueueName, w.in.Run.After))
	})
	w.selector.AddReceive(ended, func(c workflow.ReceiveChannel, _ bool) {
		var err error
		c.Receive(ctx, &err)
		w.waits = false
		skipped, ok := errors.AsType[*skippedError](err)
		switch {
		case ok:
			w.skipped = skipped.why
			w.step(ctx, sweep.Skip{})
		case err != nil:
			w.invalid = err
		default:
			w.step(ctx, sweep.Begin{Now: workflow.Now(ctx)})
		}
	})
}

func (w *sweepOf) resumption(ctx workflow.Context) *sweep.Resumption {
	noteStart(ctx)
	next := &sweep.Resumption{Machine: w.machine.Snapshot(), Held: w.held, Waited: w.waited}
	//workflowcheck:ignore the keys are sorted
	for _, trial := range slices.Sorted(maps.Keys(w.open)) {
		next.Open = append(next.Open, sweep.Open{Trial: trial, RunID: w.open[trial]})
	}
	//workflowcheck:ignore the keys are sorted
	next.Interrupted = slices.Sorted(maps.Keys(w.interrupted))
	return next
}

// step passes an event to the machine and carries out its actions.
func (w *sweepOf) step(ctx workflow.Context, e sweep.Event) {
	for _, a := range w.machine.Step(e) {
		switch a := a.(type) {
		case sweep.Start:
			w.held = append(w.held, a.Trial)
		case sweep.Interrupt:
			w.interrupt(ctx, a.Trial)
		case sweep.Finish:
			w.result = w.finish(ctx)
		}
	}
	workflow.SetCurrentDetails(ctx, w.machine.Status(workflow.Now(ctx)).Counts())
}

// maxStarting limits how many trials the server is asked to start at a time, because one message
// may contain all of their specs.
const maxStarting = 20

// startHeld starts the next trials. Trials that were stopped before their start count as ended. If
// leave is set, startHeld leaves the trials to the next execution.
func (w *sweepOf) startHeld(ctx workflow.Context, leave bool) {
	var stay []int
	for len(w.held) > 0 && w.result == nil {
		trial := w.held[0]
		w.held = w.held[1:]
		switch {
		case w.interrupted[trial]:
			w.ended(ctx, trial, sweep.Cancelled) // may append to w.held
		case leave || w.starting == maxStarting:
			stay = append(stay, trial)
		default:
			w.start(ctx, trial)
		}
	}
	w.held = append(stay, w.held...)
}

// start starts a trial's run.
func (w *sweepOf) start(ctx workflow.Context, trial int) {
	id, words := spec.TrialID(w.id, trial), sweep.Words(w.trials.Values(trial))
	s, err := w.in.Trial(w.trials, w.id, trial)
	if err != nil { // the spec was checked before the sweep was started
		workflow.GetLogger(ctx).Error("a trial has no spec", "trial", trial, "error", err)
		s = &spec.RunSpec{} // the run will refuse this spec
	}
	if s.Ship.Archive != nil {
		s.Ship.Sweep = &spec.ShipSweep{ID: w.id, Execution: workflow.GetInfo(ctx).FirstRunID}
	}
	if w.waited {
		s.After = nil
	}
	givesUp(s, workflow.GetInfo(ctx).TaskQueueName)
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            id,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowTaskTimeout:   spec.WorkflowTaskTimeout,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		Memo:                  runs.Memo(s, w.in.Owner),
		TypedSearchAttributes: trialAttributes(workflow.GetTypedSearchAttributes(ctx), s, w.in.Owner),
		StaticSummary:         markdown.Name(words),
	}), spec.TrialWorkflowType, s)
	w.starting++
	w.selector.AddFuture(child.GetChildWorkflowExecution(), func(f workflow.Future) {
		w.starting--
		var e workflow.Execution
		if f.Get(ctx, &e) != nil {
			return // the future for the result returns the error
		}
		w.open[trial] = e.RunID
		if w.interrupted[trial] {
			delete(w.interrupted, trial)
			w.interrupt(ctx, trial)
		}
	})
	w.selector.AddFuture(child, func(f workflow.Future) {
		result := &spec.RunResult{}
		if err := f.Get(ctx, result); err != nil {
			result = runs.ResultOf(err)
		}
		w.ended(ctx, trial, sweep.StateOfResult(result))
	})
}

// givesUp makes a trial give up a host that does not return, unless the trial's spec already
// decides this. By default, a run on one host waits for that host, but a trial can run on another
// one.
func givesUp(s *spec.RunSpec, queue string) {
	if s.OnDisconnect != "" || spec.IsPrivateQueue(queue) {
		return
	}
	if len(s.TaskList()) == 1 {
		s.OnDisconnect = spec.OnDisconnectStop(time.Duration(spec.DefaultLong))
	} else if s.RequeueOn == nil { // the trial may have several hosts
		s.RequeueOn = slices.Concat(spec.DefaultRequeueOn, []spec.RequeueOn{spec.RequeueOnHostLost})
	}
}

// ended passes a finished trial's state to the machine.
func (w *sweepOf) ended(ctx workflow.Context, trial int, state sweep.State) {
	delete(w.open, trial)
	delete(w.interrupted, trial)
	w.step(ctx, sweep.Ended{Trial: trial, State: state, Now: workflow.Now(ctx)})
}

// interrupt cancels a running trial. If the server has not yet started the trial's run, interrupt
// waits for that.
func (w *sweepOf) interrupt(ctx workflow.Context, trial int) {
	execution, started := w.open[trial]
	if !started {
		w.interrupted[trial] = true
		return
	}
	w.cancelling++
	done := workflow.RequestCancelExternalWorkflow(ctx, spec.TrialID(w.id, trial), "")
	w.selector.AddFuture(done, func(f workflow.Future) {
		w.cancelling--
		if err := f.Get(ctx, nil); err != nil { // the trial has just finished
			workflow.GetLogger(ctx).Info("a trial was not cancelled", "trial", trial, "execution", execution, "error", err)
		}
	})
}

// check makes a host look for finished trials that an earlier execution started.
func (w *sweepOf) check(ctx workflow.Context, open []sweep.Open) {
	if len(open) == 0 {
		return
	}
	actx := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           spec.HostsQueue(workflow.GetInfo(ctx).TaskQueueName),
		StartToCloseTimeout: trialsCheckTakes,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 1.5, MaximumInterval: 5 * time.Second},
		Summary:             "check which trials have ended",
	})
	done := workflow.ExecuteActivity(actx, spec.ActivityTrialsCheck, sweep.CheckInput{Sweep: w.id, Trials: open})
	w.selector.AddFuture(done, func(f workflow.Future) {
		var out sweep.CheckOutput
		if err := f.Get(ctx, &out); err != nil {
			workflow.GetLogger(ctx).Error("cannot check the trials", "error", err)
			return
		}
		for _, t := range out.Ended {
			open = slices.DeleteFunc(open, func(o sweep.Open) bool { return o.Trial == t.Trial })
			w.ended(ctx, t.Trial, sweep.StateNamed(t.State))
		}
		if w.result == nil {
			w.check(ctx, open)
		}
	})
}

// trialsCheckTakes limits one check of the trials.
const trialsCheckTakes = 30 * time.Second

func (w *sweepOf) status(ctx workflow.Context) spec.Status {
	s := spec.Status{
		State: spec.RunRunning, Tasks: []spec.TaskStatus{}, Started: workflow.GetInfo(ctx).WorkflowStartTime,
		Sweep: w.machine.Status(workflow.Now(ctx)), Result: w.result,
	}
	switch {
	case w.result != nil:
		s.State = spec.RunEnded
	case w.waits:
		s.State = spec.RunPlacing
	}
	return s
}

// finish returns the sweep's result.
func (w *sweepOf) finish(ctx workflow.Context) *spec.RunResult {
	r := &spec.RunResult{Verdict: w.machine.Verdict(), Tasks: []spec.TaskResult{}, Sweep: w.machine.Status(workflow.Now(ctx))}
	switch r.Verdict {
	case spec.VerdictFailed:
		r.ExitCode, r.ErrorType = exitcode.Failed, spec.ErrTrials
	case spec.VerdictCancelled:
		r.ExitCode, r.EndedBy = exitcode.Interrupted, spec.EndedByCancel
	case spec.VerdictSkipped:
		r.ExitCode, r.ErrorType, r.EndedBy, r.Reason = exitcode.Failed, spec.ErrSkipped, spec.EndedByAfter, w.skipped
	}
	r.Message = outcome.Sentence(r)
	return r
}

// trialAttributes returns a trial's search attributes. It uses only those that the sweep was
// started with, because the namespace may lack the rest.
func trialAttributes(known temporal.SearchAttributes, s *spec.RunSpec, owner string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(knownOf(runs.Attributes(s, owner, ""), attributesIn(known))...)
}
