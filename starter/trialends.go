package starter

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// TrialEnd is the end of a trial.
type TrialEnd struct {
	Trial int
	// ExecutionID is the execution of its run.
	ExecutionID string
	State       sweep.State
	// Message is why it has failed, if that is known.
	Message string
}

// FollowTrials calls ended with each trial that ends, in order, until the sweep has ended or ctx is
// done. The handle must name the execution of the sweep.
func (r *Run) FollowTrials(ctx context.Context, ended func(TrialEnd)) {
	f := &trialFollower{ended: ended, executions: map[int]string{}, over: map[string]bool{}}
	for execution := r.ExecutionID; execution != "" && ctx.Err() == nil; {
		next, err := f.follow(r.client.GetWorkflowHistory(ctx, r.ID, execution, true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT))
		if err != nil {
			// The server may be away. All events are read again.
			if isNotFound(err) || retry.Sleep(ctx, retryEvery) != nil {
				return
			}
			continue
		}
		execution = next
	}
}

// trialFollower reads the histories of a sweep.
type trialFollower struct {
	ended      func(TrialEnd)
	executions map[int]string  // of trials that run
	over       map[string]bool // executions that have ended
	checks     map[int64]bool  // events that have scheduled a check
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
		if _, trial, ok := spec.SplitTrialID(started.GetWorkflowId()); ok && !f.over[started.GetRunId()] {
			f.executions[trial] = started.GetRunId()
		}
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_COMPLETED:
		f.end(e.GetChildWorkflowExecutionCompletedEventAttributes().GetWorkflowExecution().GetWorkflowId(), sweep.Succeeded, nil)
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
		a := e.GetChildWorkflowExecutionFailedEventAttributes()
		f.end(a.GetWorkflowExecution().GetWorkflowId(), sweep.Failed, a.GetFailure())
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_TERMINATED:
		f.end(e.GetChildWorkflowExecutionTerminatedEventAttributes().GetWorkflowExecution().GetWorkflowId(), sweep.Failed, nil)
	case enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_CANCELED:
		f.end(e.GetChildWorkflowExecutionCanceledEventAttributes().GetWorkflowExecution().GetWorkflowId(), sweep.Cancelled, nil)
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		f.checks[e.GetEventId()] = e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == spec.ActivityTrialsCheck
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		var out sweep.CheckOutput
		if f.checks[a.GetScheduledEventId()] && decode(a.GetResult(), &out) {
			for _, t := range out.Ended {
				f.end(spec.TrialID("s", t.Trial), sweep.StateNamed(t.State), nil)
			}
		}
	}
}

func (f *trialFollower) end(id string, state sweep.State, failure *failurepb.Failure) {
	_, trial, _ := spec.SplitTrialID(id)
	execution, running := f.executions[trial]
	if !running {
		return
	}
	delete(f.executions, trial)
	f.over[execution] = true
	for failure.GetCause() != nil {
		failure = failure.GetCause()
	}
	f.ended(TrialEnd{Trial: trial, ExecutionID: execution, State: state, Message: failure.GetMessage()})
}
