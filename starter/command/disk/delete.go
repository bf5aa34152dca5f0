package disk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/workflowservice/v1"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/internal/temporalapi"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// openError reports that a run has not ended.
func openError(id string) error {
	return fmt.Errorf("run %s has not ended; stop it with `clusterrun stop %s`", id, id)
}

// deleteRun deletes an ended run from the server, with its groups, barriers and closure queue. It
// returns how many of these workflows it deleted. A handle without an execution stands for all runs
// with that ID. An interrupted call can be repeated.
func deleteRun(ctx context.Context, r *starter.Run, namespace string) (deleted int, err error) {
	own, err := executions(ctx, r)
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(own, isOpen) {
		return 0, openError(r.ID)
	}
	belong, err := workflows(ctx, r, fmt.Sprintf("WorkflowId STARTS_WITH %s AND %s", temporalapi.Quoted(r.ID+"/"), workflowstatus.Closed))
	if err != nil {
		return 0, err
	}
	belong = slices.DeleteFunc(belong, func(w *workflowpb.WorkflowExecutionInfo) bool {
		return !slices.ContainsFunc(own, func(e *workflowpb.WorkflowExecutionInfo) bool { return belongs(r.ID, w, e.GetExecution().GetRunId()) })
	})
	// The run comes last, and its latest execution, which records the first, last of all.
	for _, w := range append(belong, own...) {
		_, err := r.Client().WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
			Namespace:         namespace,
			WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: w.GetExecution().GetWorkflowId(), RunId: w.GetExecution().GetRunId()},
		})
		if err != nil && !servererror.IsNotFound(err) {
			return deleted, fmt.Errorf("delete workflow %s: %w", w.GetExecution().GetWorkflowId(), err)
		}
		deleted++
	}
	return deleted, nil
}

// belongs reports whether w belongs to the given execution of the run.
func belongs(run string, w *workflowpb.WorkflowExecutionInfo, execution string) bool {
	id := w.GetExecution().GetWorkflowId()
	return strings.HasPrefix(id, spec.BarrierIDPrefix(run, execution)) ||
		strings.HasPrefix(id, spec.GroupIDPrefix(run, execution)) ||
		id == closure.QueueID(run, execution)
}

// executions returns the run's executions, oldest first.
func executions(ctx context.Context, r *starter.Run) ([]*workflowpb.WorkflowExecutionInfo, error) {
	all, err := workflows(ctx, r, "WorkflowId = "+temporalapi.Quoted(r.ID))
	if err != nil {
		return nil, err
	}
	var own []*workflowpb.WorkflowExecutionInfo
	for _, e := range all {
		if r.ExecutionID != "" && r.ExecutionID != e.GetExecution().GetRunId() {
			d, err := r.Client().DescribeWorkflowExecution(ctx, r.ID, e.GetExecution().GetRunId())
			if servererror.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if d.GetWorkflowExecutionInfo().GetFirstRunId() != r.ExecutionID {
				continue
			}
		}
		own = append(own, e)
	}
	slices.SortStableFunc(own, func(a, b *workflowpb.WorkflowExecutionInfo) int {
		return a.GetStartTime().AsTime().Compare(b.GetStartTime().AsTime())
	})
	return own, nil
}

func isOpen(e *workflowpb.WorkflowExecutionInfo) bool {
	return workflowstatus.IsOpen(e.GetStatus())
}

func workflows(ctx context.Context, r *starter.Run, query string) ([]*workflowpb.WorkflowExecutionInfo, error) {
	found, err := temporalapi.Workflows(ctx, r.Client(), query)
	if err != nil {
		return nil, fmt.Errorf("list the workflows of run %s: %w", r.ID, err)
	}
	return found, nil
}
