package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

// skippedError reports that an earlier run did not finish as the spec requires.
type skippedError struct{ why string }

func (e *skippedError) Error() string { return e.why }

// awaitEarlier waits until the spec's earlier runs have finished. If one of them does not end as
// required, it returns a [*skippedError] without waiting for the rest.
//
// A run can only wait for runs that started before it, so runs never wait for each other.
func awaitEarlier(parent workflow.Context, queue string, after []spec.After) error {
	ctx, giveUp := workflow.WithCancel(parent)
	defer giveUp()
	ends := workflow.NewBufferedChannel(ctx, len(after))
	for i, a := range after {
		workflow.Go(ctx, func(ctx workflow.Context) {
			end, err := endOf(ctx, queue, i, a)
			if err == nil && !a.Holds(end) {
				err = &skippedError{a.Why(end)}
			}
			ends.SendAsync(err)
		})
	}
	for range after {
		var err error
		if ends.Receive(ctx, &err); err != nil {
			return err
		}
	}
	return parent.Err()
}

// endOf waits for the end of an earlier run.
func endOf(ctx workflow.Context, queue string, i int, a spec.After) (spec.RunEnd, error) {
	if a.Run == workflow.GetInfo(ctx).WorkflowExecution.ID {
		return "", invalidAfter(i, "is this run's own ID", "a run cannot wait for itself; name another run")
	}
	// The first attempt resolves the ID to an execution, because the ID may be reused while this
	// run waits.
	in := spec.RunEndInput{Run: a.Run}
	var out spec.RunEndOutput
	for out.End == "" {
		ctx := waitingFor(ctx, queue, a)
		if err := workflow.ExecuteActivity(ctx, spec.ActivityRunEnd, in).Get(ctx, &out); err != nil {
			return "", err
		}
		if out.Execution == "" {
			return "", invalidAfter(i, fmt.Sprintf("there is no run %q", a.Run), "`clusterrun list` shows the runs")
		}
		in.Execution = out.Execution
	}
	return out.End, nil
}

func invalidAfter(i int, message, remedy string) error {
	err := &spec.InvalidSpecError{Problems: []spec.Problem{{Path: fmt.Sprintf("after[%d].run", i), Message: message, Remedy: remedy}}}
	return temporal.NewNonRetryableApplicationError(err.Error(), spec.ErrInvalidRunSpec, nil)
}

// waitingFor returns the context for RunEnd, which runs on one of the queue's hosts until the
// earlier run finishes.
func waitingFor(ctx workflow.Context, queue string, a spec.After) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ActivityID:          spec.AfterActivity + a.Run,
		TaskQueue:           spec.HostsQueue(queue),
		StartToCloseTimeout: checkLasts,
		HeartbeatTimeout:    checkSilence,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: time.Second, BackoffCoefficient: 1.5, MaximumInterval: 10 * time.Second,
		},
		Summary: "for " + markdown.Inline(a.Wants(), 200),
	})
}
