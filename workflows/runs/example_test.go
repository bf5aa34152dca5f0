package runs_test

import (
	"errors"

	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/runs"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A workflow that trains, and evaluates only what has been trained well.
func Example() {
	_ = func(ctx workflow.Context, dir string) error {
		train := &spec.RunSpec{Name: "train", Command: []string{"python3", "train.py"}, Dir: dir, Tasks: []spec.TaskGroup{{Type: "worker"}}}
		_, err := runs.Run(ctx, train, runs.Options{})
		var failed *runs.Error
		if errors.As(err, &failed) && failed.Result.Verdict == spec.VerdictTimedOut {
			workflow.GetLogger(ctx).Info("too slow", "limit", failed.Result.Limit)
		}
		if err != nil {
			return err
		}
		evaluate := &spec.RunSpec{Name: "evaluate", Command: []string{"python3", "evaluate.py"}, Dir: dir, Tasks: []spec.TaskGroup{{Type: "worker"}}}
		_, err = runs.RunNexus(ctx, "clusterrun", runs.RunInput{Spec: evaluate}, workflow.NexusOperationOptions{})
		return err
	}
}
