package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// Unreserve releases the reservations of a generation and earlier generations on this host.
func (h *Host) Unreserve(ctx context.Context, in spec.Group) (none hostapi.None, err error) {
	run := runOf(ctx, in.Run)
	h.gate.noted(run, "unreserve")
	if err := h.gate.checkLeft(ctx, run, in.Generation); err != nil {
		return none, err
	}
	return none, h.reservations.unreserve(ctx, run, in.Generation)
}

// checkLeft returns an error if a run has not left this host, because a process under a policy must
// remain known while it lives.
func (g *gate) checkLeft(ctx context.Context, run runkey.Run, generation int) error {
	if !g.Guard.HasPolicy() {
		return nil
	}
	all, err := g.Supervisor.Processes(ctx, run)
	if err != nil {
		return err
	}
	for _, q := range notEnded(all.Processes) {
		if q.Key.Generation <= generation {
			return temporal.NewNonRetryableApplicationError(fmt.Sprintf("host %s: %s is still running here", g.Name, q.Key.Task), spec.ErrInvalidRequest, nil)
		}
	}
	return nil
}

// unreserve frees the slots of a run that has left this host or was not placed successfully. The
// run's plan and ports are kept until the run is released, because the run may return.
func (r *reservations) unreserve(ctx context.Context, run runkey.Run, generation int) error {
	if err := r.stuckOf(ctx, run); err != nil {
		return err
	}
	_, err := r.plans.change(run, func(p *plan) error {
		if p.Generation <= generation {
			p.Tasks, p.Added = nil, nil
		}
		return nil
	})
	if errors.Is(err, errNoPlan) {
		return nil
	}
	return err
}
