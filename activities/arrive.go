package activities

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/barriers"
	"github.com/clusterrun/clusterrun/activities/supervisor"
)

// errNoBarriers says that this host was made without barriers across hosts.
var errNoBarriers = errors.New("this host worker has no barriers across hosts")

// Arrive brings a task of this host to a barrier across hosts and waits there; see
// [barriers.Barriers.Arrive]. Of the participants it tells apart those that live
// here, so that they are announced together.
func (h *Host) Arrive(ctx context.Context, run supervisor.RunKey, a barriers.Arrival) (barriers.Release, error) {
	if h.Meetings == nil {
		return barriers.Release{}, errNoBarriers
	}
	a.Run.WorkflowID, a.Run.RunID = run.WorkflowID, run.RunID
	p, err := h.plans.get(run)
	if err != nil {
		return barriers.Release{}, err
	}
	for _, task := range a.Participants {
		if _, added := p.Added[task]; added || slices.Contains(p.Tasks, task) {
			a.Here = append(a.Here, task)
		}
	}
	return h.Meetings.Arrive(ctx, a)
}

// forgetBarriers ends what nobody waits for any more. What cannot be ended now
// finds out by itself that the run is over.
func (h *Host) forgetBarriers(ctx context.Context, run supervisor.RunKey) {
	if h.Meetings == nil {
		return
	}
	if err := h.Meetings.Forget(ctx, run.WorkflowID, run.RunID); err != nil {
		h.Log.Warn("a barrier of a released run is still open", zap.Error(err))
	}
}
