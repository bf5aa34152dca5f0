package activities

import (
	"context"
	"errors"

	"go.uber.org/zap"
)

// errStranger is returned if the server is not the one that the run is on.
var errStranger = errors.New("the Temporal server is a different one, or its database is new; the processes of the run are left alone")

// knows returns nil if the server is the one that the run is on. Only then does it mean
// anything if the server does not know the run.
func (r *reconciler) knows(ctx context.Context, p *plan) error {
	if p.Server == "" {
		return nil // from a version that did not note this
	}
	id, err := r.Server.Identity(ctx, p.Run.Namespace)
	if err != nil || id == p.Server {
		return err
	}
	if _, told := r.strangers.LoadOrStore(p.Run, id); !told {
		r.Log.Warn(errStranger.Error(), zap.String("run", p.Run.WorkflowID))
	}
	return errStranger
}
