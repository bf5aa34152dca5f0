package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// stopTrials stops the trials of a batch that its sweep names, once they can be reached.
func (r *clusterRun) stopTrials(ctx workflow.Context) {
	named := workflow.GetSignalChannel(ctx, spec.SignalStopTrials)
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var trials []int
			named.Receive(ctx, &trials)
			if workflow.Await(ctx, func() bool { return !r.machine.Placing() }) != nil {
				return
			}
			tasks := list.Of(trials, func(trial int) string { return spec.TaskName(r.spec.Tasks[0].Type, trial-r.spec.Batch.First) })
			r.events.Send(ctx, request{event: lifecycle.TerminateTasks{TaskRequest: spec.TaskRequest{Tasks: tasks}}})
		}
	})
}
