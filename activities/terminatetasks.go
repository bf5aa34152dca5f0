package activities

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// TerminateTasks ends the processes of tasks. It is always allowed, since its sender can also
// end the run.
func (h *Host) TerminateTasks(ctx context.Context, in hostapi.TerminateTasksInput) (spec.RequestAnswer, error) {
	p, err := h.accept(ctx, in.Group, request{"terminate", in.Tasks, ""})
	if p == nil {
		return spec.RequestAnswer{}, err
	}
	if p.Spec.Batch != nil {
		h.turns.stop(p.Run, in.Tasks)
	}
	return h.stops.stopTasks(ctx, p, in.TaskRequest, supervisor.ReasonTerminate)
}
