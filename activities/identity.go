package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"
)

// identityPatience is how long a server may take to say who it is.
const identityPatience = 5 * time.Second

// identity returns what tells the server from others, and its database from the next one: the
// ID of the namespace, which is made with it. The ID of the cluster is none, for a namespace that
// fails over to another cluster takes its runs along.
func (h *Host) identity(ctx context.Context, namespace string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, identityPatience)
	defer cancel()
	d, err := h.Server.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	var denied *serviceerror.PermissionDenied
	if errors.As(err, &denied) {
		return "", nil // who may not ask has to believe it
	}
	if err != nil {
		return "", fmt.Errorf("ask the server who it is: %w", err)
	}
	return d.GetNamespaceInfo().GetId(), nil
}

// errStranger: the server is not the one that the run is on.
var errStranger = errors.New("the Temporal server is another one, or its database is new; the processes of the run are left alone")

// knows returns nil if the server is the one that the run is on: only then it means something
// that it does not know the run.
func (h *Host) knows(ctx context.Context, p *plan) error {
	if p.Server == "" {
		return nil // from before this was noted
	}
	id, err := h.identity(ctx, p.Run.Namespace)
	if err != nil || id == p.Server {
		return err
	}
	if _, told := h.strangers.LoadOrStore(p.Run, id); !told {
		h.Log.Warn(errStranger.Error(), zap.String("run", p.Run.WorkflowID))
	}
	return errStranger
}
