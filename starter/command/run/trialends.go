package run

import (
	"context"
	"time"

	"go.temporal.io/sdk/converter"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// trialEnd is a trial's outcome.
type trialEnd struct {
	Trial int
	// RunID is the trial's run, and ExecutionID that run's execution.
	RunID, ExecutionID string
	State              sweep.State
	// Message is why the trial failed, if known.
	Message string
}

// followTrials calls ended for each trial as it ends, in order, until the sweep has ended or ctx
// is done. The handle must name the sweep's execution.
func followTrials(ctx context.Context, r *starter.Run, ended func(trialEnd)) {
	f := &trialFollower{ended: ended, executions: map[string]string{}, over: map[string]bool{}}
	for execution := r.ExecutionID; execution != "" && ctx.Err() == nil; {
		next, err := f.follow(r.Client().GetWorkflowHistory(ctx, r.ID, execution, true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT))
		if err != nil {
			// The server may be unreachable. Retry, with all events.
			if servererror.IsNotFound(err) || retry.Sleep(ctx, trialsAgain) != nil {
				return
			}
			continue
		}
		execution = next
	}
}

var payloads = converter.GetDefaultDataConverter()

// trialsAgain is the pause before histories are read again.
const trialsAgain = 300 * time.Millisecond

// trialFollower reads a sweep's histories.
type trialFollower struct {
	ended      func(trialEnd)
	executions map[string]string // running trials' run executions, by run ID
	over       map[string]bool   // closed executions
	checks     map[int64]bool    // events that scheduled a check
}

type history interface {
	HasNext() bool
	Next() (*historypb.HistoryEvent, error)
}

// follow reads one history. It returns the execution that continues the sweep, or "".
func (f *trialFollower) follow(events history) (next string, err error) {
	f.checks = map[int64]bool{}
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return "", err
		}
		if next := e.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); next != "" {
			return next, nil
		}
		f.read(e)
	}
	return "", nil
}

func (f *trialFollower) read(e *historypb.HistoryEvent) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
		started := e.GetChildWorkflowExecutionStartedEventAttributes().GetWorkflowExecution()
		if !f.over[started.GetRunId()] {
			f.executions[started.GetWorkflowId()] = started.GetRunId()
		}
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
		a := e.GetChildWorkflowExecutionCompletedEventAttributes()
		result := &spec.RunResult{Verdict: spec.VerdictSucceeded}
		_ = payloads.FromPayloads(a.GetResult(), result) // a result from another version may contain less
		f.end(a.GetWorkflowExecution().GetWorkflowId(), nil, result)
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		a := e.GetChildWorkflowExecutionFailedEventAttributes()
		f.end(a.GetWorkflowExecution().GetWorkflowId(), a.GetFailure(), runs.ResultOf(temporal.GetDefaultFailureConverter().FailureToError(a.GetFailure())))
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
		f.end(e.GetChildWorkflowExecutionTerminatedEventAttributes().GetWorkflowExecution().GetWorkflowId(), nil, nil)
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
		a := e.GetChildWorkflowExecutionCanceledEventAttributes()
		result := &spec.RunResult{Verdict: spec.VerdictCancelled}
		_ = payloads.FromPayloads(a.GetDetails(), result)
		f.end(a.GetWorkflowExecution().GetWorkflowId(), nil, result)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		f.checks[e.GetEventId()] = e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == spec.ActivityTrialsCheck
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		var out sweep.CheckOutput
		if f.checks[a.GetScheduledEventId()] && payloads.FromPayloads(a.GetResult(), &out) == nil {
			for _, t := range out.Ended {
				f.endFound(t)
			}
		}
	}
}

// endFound reports a trial that, according to an activity, has ended.
func (f *trialFollower) endFound(t sweep.EndedTrial) {
	for id := range f.executions {
		if _, trial, ok := spec.SplitTrialID(id); ok && trial == t.Trial {
			f.tell(id, trialEnd{State: sweep.StateNamed(t.State)})
			return
		}
	}
}

// end reports a trial. result may be nil.
func (f *trialFollower) end(id string, failure *failurepb.Failure, result *spec.RunResult) {
	for failure.GetCause() != nil {
		failure = failure.GetCause()
	}
	f.tell(id, trialEnd{State: sweep.StateOfResult(result), Message: failure.GetMessage()})
}

// tell reports once that a trial's run has ended.
func (f *trialFollower) tell(id string, end trialEnd) {
	_, trial, ok := spec.SplitTrialID(id)
	execution, running := f.executions[id]
	if !running || !ok {
		return
	}
	delete(f.executions, id)
	f.over[execution] = true
	end.Trial, end.RunID, end.ExecutionID = trial, id, execution
	f.ended(end)
}
