package runrecord

import (
	"cmp"
	"context"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// History returns the histories of the run's executions that the server has kept, oldest first,
// followed by those of the groups that carry a large run's tasks.
func History(ctx context.Context, r *starter.Run) ([]*historypb.History, error) {
	d, err := r.Describe(ctx)
	if err != nil {
		return nil, err
	}
	info := d.GetWorkflowExecutionInfo()
	last := info.GetExecution().GetRunId()
	var runs, groups []*historypb.History
	for execution := cmp.Or(info.GetFirstRunId(), info.GetExecution().GetRunId()); execution != ""; {
		h, err := history(ctx, r.Client(), r.ID, execution)
		if servererror.IsNotFound(err) && len(runs) == 0 && execution != last {
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
			group, err := history(ctx, r.Client(), a.GetWorkflowExecution().GetWorkflowId(), a.GetWorkflowExecution().GetRunId())
			if err != nil && !servererror.IsNotFound(err) {
				return nil, fmt.Errorf("read the history of a group of run %s: %w", r.ID, err)
			}
			if err == nil {
				groups = append(groups, group)
			}
		}
	}
	return append(runs, groups...), nil
}

func history(ctx context.Context, c client.Client, id, execution string) (*historypb.History, error) {
	h := &historypb.History{}
	events := c.GetWorkflowHistory(ctx, id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, err
		}
		h.Events = append(h.Events, e)
	}
	return h, nil
}
