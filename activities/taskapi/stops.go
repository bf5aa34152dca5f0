package taskapi

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Stops brings a task's request that the whole run stops to the run.
type Stops interface {
	// RequestStop answers with how the run stands afterwards. The same key again is
	// the same request. Its error is for the task where the run refuses it.
	RequestStop(ctx context.Context, by runkey.Task, request spec.TogetherRequest) (spec.Stopping, error)
	// ClearStop takes a stop back.
	ClearStop(ctx context.Context, by runkey.Task) (spec.Stopping, error)
}
