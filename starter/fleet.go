package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter/internal/temporalapi"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Fleet is a queue's hosts and the runs that are waiting for capacity on them.
type Fleet struct {
	Queue  string
	client client.Client
}

// GetFleet returns a queue's fleet. An empty queue selects the default queue.
func GetFleet(c client.Client, queue string) *Fleet {
	queue = cmp.Or(queue, spec.TaskQueue)
	return &Fleet{Queue: queue, client: c}
}

// NoFleetError reports that a queue does not have any hosts.
type NoFleetError struct{ Queue string }

func (e *NoFleetError) Error() string {
	return fmt.Sprintf("queue %q has no hosts on this server; start one with `clusterrun worker`", e.Queue)
}

// Hosts lists the hosts by name.
func (f *Fleet) Hosts(ctx context.Context) ([]fleet.HostStatus, error) {
	return fleet.AllHosts(func(after string) ([]fleet.HostStatus, error) {
		return queryFleet[[]fleet.HostStatus](ctx, f, spec.QueryHosts, after)
	})
}

// Waiting lists the runs that are waiting for capacity, in order.
func (f *Fleet) Waiting(ctx context.Context) ([]fleet.Waiting, error) {
	return fleet.AllWaiting(func(after int) ([]fleet.Waiting, error) {
		return queryFleet[[]fleet.Waiting](ctx, f, spec.QueryQueue, after)
	})
}

// Plan returns where a spec's tasks would be placed now, or why they cannot be.
func (f *Fleet) Plan(ctx context.Context, s *spec.RunSpec) (fleet.Grant, error) {
	return queryFleet[fleet.Grant](ctx, f, spec.QueryPlan, fleet.DemandOf(s.WithDefaults()))
}

// Cordon keeps new tasks off a host, and drains it if q requests that.
func (f *Fleet) Cordon(ctx context.Context, q fleet.Cordoned) error {
	return f.update(ctx, spec.UpdateCordon, q)
}

// Uncordon withdraws a cordon or a drain.
func (f *Fleet) Uncordon(ctx context.Context, host string) error {
	return f.update(ctx, spec.UpdateUncordon, fleet.Uncordoned{Name: host})
}

// queryPause is the pause between two queries to a fleet.
const queryPause = 100 * time.Millisecond

func queryFleet[A any](ctx context.Context, f *Fleet, name string, args ...any) (A, error) {
	var answer A
	var out *client.QueryWorkflowWithOptionsResponse
	var err error
	// A busy server gives up before this client does.
	for until := time.Now().Add(temporalapi.QueryTries * temporalapi.QueryTimeout); ; {
		trying, cancel := context.WithTimeout(ctx, temporalapi.QueryTimeout)
		out, err = f.client.QueryWorkflowWithOptions(trying, &client.QueryWorkflowWithOptionsRequest{
			WorkflowID: spec.FleetID(f.Queue), QueryType: name, Args: args,
			// A fleet that was terminated would answer with stale facts.
			QueryRejectCondition: enumspb.QUERY_REJECT_CONDITION_NOT_OPEN,
		})
		cancel()
		if !isUnanswered(err) || time.Now().After(until) || retry.Sleep(ctx, queryPause) != nil {
			break
		}
	}
	switch {
	case err != nil:
		return answer, f.requestError(err)
	case out.QueryRejected != nil:
		return answer, &NoFleetError{Queue: f.Queue}
	}
	if err := out.QueryResult.Get(&answer); err != nil {
		return answer, fmt.Errorf("the host list of queue %s has another version: %w", f.Queue, err)
	}
	return answer, nil
}

// updateTimeout limits the wait for a fleet to carry out a request. The server keeps the request
// until a worker takes it.
const updateTimeout = 15 * time.Second

func (f *Fleet) update(ctx context.Context, name string, arg any) error {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	handle, err := f.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: spec.FleetID(f.Queue), UpdateName: name, Args: []any{arg},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	if isUnanswered(err) {
		return fmt.Errorf("%w; the request may still be carried out once one is running", f.requestError(err))
	}
	return f.requestError(err)
}

// isUnanswered reports whether no worker answered a query or an update in time.
func isUnanswered(err error) bool {
	return IsError[*client.WorkflowUpdateServiceTimeoutOrCanceledError](err) || IsError[*serviceerror.DeadlineExceeded](err) || errors.Is(err, context.DeadlineExceeded) ||
		IsError[*serviceerror.Canceled](err) // the server's answer when a query times out
}

// requestError explains why a fleet did not answer.
func (f *Fleet) requestError(err error) error {
	var refused *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return &RefusedError{Reason: refused.Message(), Invalid: refused.Type() == spec.ErrInvalidRequest}
	case isNotFound(err):
		return &NoFleetError{Queue: f.Queue}
	case isUnanswered(err):
		return fmt.Errorf("no host in queue %q answers; is a `clusterrun worker` running? (%w)", f.Queue, err)
	default:
		return fmt.Errorf("queue %s: %w", f.Queue, err)
	}
}
