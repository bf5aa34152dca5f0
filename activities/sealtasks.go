package activities

import (
	"context"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// SealTasks prevents all further restarts of the run's tasks on this host.
func (h *Host) SealTasks(ctx context.Context, in hostapi.TasksInput) (spec.RequestAnswer, error) {
	p, err := h.accept(ctx, in.Group, request{"seal", in.Tasks, ""})
	if p == nil {
		return spec.RequestAnswer{}, err
	}
	_, err = h.plans.change(p.Run, func(p *plan) error {
		p.Sealed = true
		return nil
	})
	return spec.RequestAnswer{Tasks: in.Tasks}, err
}
