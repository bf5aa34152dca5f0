package activities

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// TerminateTasks terminates tasks' processes. It is always allowed, since its sender can also end
// the run.
func (h *Host) TerminateTasks(ctx context.Context, in spec.HostRequest[spec.TaskRequest]) (spec.RequestAnswer, error) {
	p, err := h.accept(ctx, in.Group, request{"terminate", in.Request.Tasks, ""})
	if p == nil {
		return spec.RequestAnswer{}, err
	}
	return h.stops.stopTasks(ctx, p, in.Request, supervisor.ReasonTerminate)
}
