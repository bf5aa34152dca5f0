package starter

import (
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Spec returns the run's spec.
func (r *Run) Spec(ctx context.Context) (*spec.RunSpec, error) {
	d, err := r.describe(ctx)
	if err != nil {
		return nil, r.requestError(err)
	}
	info := d.GetWorkflowExecutionInfo()
	s, err := r.spec(ctx, r.firstOf(info).RunID)
	if isNotFound(err) { // the server deletes executions some time after they close
		s, err = r.spec(ctx, info.GetExecution().GetRunId())
	}
	if err != nil {
		return nil, fmt.Errorf("read the spec of run %s: %w", r.ID, err)
	}
	return s, nil
}

// History returns the histories of the run's executions that the server has kept, oldest first,
// followed by those of the groups that carry a large run's tasks.
func (r *Run) History(ctx context.Context) ([]*historypb.History, error) {
	d, err := r.describe(ctx)
	if err != nil {
		return nil, r.requestError(err)
	}
	info := d.GetWorkflowExecutionInfo()
	last := info.GetExecution().GetRunId()
	var runs, groups []*historypb.History
	for execution := r.firstOf(info).RunID; execution != ""; {
		h, err := r.history(ctx, r.ID, execution)
		if isNotFound(err) && len(runs) == 0 && execution != last {
			execution = last // the server deletes executions some time after they close
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the history of run %s: %w", r.ID, err)
		}
		runs, execution = append(runs, h), ""
		for _, e := range h.GetEvents() {
			if a := e.GetWorkflowExecutionContinuedAsNewEventAttributes(); a != nil {
				execution = a.GetNewExecutionRunId()
			}
			a := e.GetChildWorkflowExecutionStartedEventAttributes()
			if a.GetWorkflowType().GetName() != spec.GroupWorkflowType {
				continue
			}
			group, err := r.history(ctx, a.GetWorkflowExecution().GetWorkflowId(), a.GetWorkflowExecution().GetRunId())
			if err != nil && !isNotFound(err) {
				return nil, fmt.Errorf("read the history of a group of run %s: %w", r.ID, err)
			}
			if err == nil {
				groups = append(groups, group)
			}
		}
	}
	return append(runs, groups...), nil
}

func (c *chain) history(ctx context.Context, id, execution string) (*historypb.History, error) {
	h := &historypb.History{}
	events := c.client.GetWorkflowHistory(ctx, id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, err
		}
		h.Events = append(h.Events, e)
	}
	return h, nil
}
