package activities

import (
	"context"
	"fmt"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// CheckStart checks whether a task could be started here.
func (h *Host) CheckStart(ctx context.Context, in hostapi.CheckStartInput) (none hostapi.None, err error) {
	p, err := h.planOf(ctx, in.Group)
	switch {
	case err != nil:
		return none, err
	case p == nil:
		return none, h.checks.cannotStart(spec.Problem{
			Path: "task", Message: fmt.Sprintf("host %s does not have this run any more", h.Name), Remedy: "try again when the run has been placed anew",
		})
	}
	return none, h.checks.checkStart(p, in.Task)
}
