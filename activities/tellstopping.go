package activities

import (
	"context"

	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// TellStopping tells the tasks of the run here whether they stop together.
func (h *Host) TellStopping(ctx context.Context, in hostapi.TellStoppingInput) (none hostapi.None, err error) {
	p, err := h.accept(ctx, in.Group, request{"tell", nil, ""})
	if p == nil {
		return none, err
	}
	_, err = h.services.Learn(p.Run, in.Stopping)
	return none, err
}
