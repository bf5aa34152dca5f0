package activities

import (
	"context"

	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/trust/policy"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// RestartTasks stops tasks' processes and starts them again. It leaves them running if any of them
// cannot be started.
func (h *Host) RestartTasks(ctx context.Context, in spec.HostRequest[spec.TaskRequest]) (spec.RequestAnswer, error) {
	p, err := h.accept(ctx, in.Group, request{"restart", in.Request.Tasks, policy.AskRestart})
	if p == nil {
		return spec.RequestAnswer{}, err
	}
	if err := h.checks.checkAgain(p, in.Request.Tasks); err != nil {
		return spec.RequestAnswer{}, err
	}
	answer, err := h.stops.stopTasks(ctx, p, in.Request, supervisor.ReasonRestart)
	return withUnreached(answer, in.Request.Tasks), err
}
