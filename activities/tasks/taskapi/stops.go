package taskapi

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Stops forwards a task's request that all tasks stop to the run.
type Stops interface {
	// RequestStop returns the run's state after the request. The same key means the same request.
	// If the run refuses it, the error is for the task.
	RequestStop(ctx context.Context, by runkey.Task, request spec.TogetherRequest) (spec.Stopping, error)
}
