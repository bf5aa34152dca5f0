package starter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// OpenError reports that a run has not ended.
type OpenError struct{ RunID string }

func (e *OpenError) Error() string {
	return fmt.Sprintf("run %s has not ended; `clusterrun stop %s` ends it", e.RunID, e.RunID)
}

// Summary returns what the server itself records about the run, without asking a worker.
// ExecutionID is the first execution. A failed run's verdict is empty.
func (r *Run) Summary(ctx context.Context) (Summary, error) {
	d, err := r.describe(ctx)
	switch {
	case isNotFound(err):
		return Summary{}, &NotFoundError{RunID: r.ID}
	case err != nil:
		return Summary{}, fmt.Errorf("describe run %s: %w", r.ID, err)
	}
	info := d.GetWorkflowExecutionInfo()
	s := summarise(info)
	s.ExecutionID = r.firstOf(info).RunID
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED {
		s.Verdict = spec.VerdictCancelled
	}
	return s, nil
}

// Delete deletes an ended run from the server, with its groups, barriers, notices and closure
// queue. It returns how many of these workflows it deleted. A handle without an execution stands
// for all runs with that ID. An interrupted Delete can be repeated.
func (r *Run) Delete(ctx context.Context, namespace string) (deleted int, err error) {
	own, err := r.executions(ctx)
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(own, isOpen) {
		return 0, &OpenError{r.ID}
	}
	belong, err := r.workflows(ctx, fmt.Sprintf("WorkflowId STARTS_WITH %s AND %s", quoted(r.ID+"/"), workflowstatus.Closed))
	if err != nil {
		return 0, err
	}
	belong = slices.DeleteFunc(belong, func(w *workflowpb.WorkflowExecutionInfo) bool {
		return !slices.ContainsFunc(own, func(e *workflowpb.WorkflowExecutionInfo) bool { return r.belongs(w, e.GetExecution().GetRunId()) })
	})
	// The run comes last, and its latest execution, which records the first, last of all.
	for _, w := range append(belong, own...) {
		_, err := r.client.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
			Namespace:         namespace,
			WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: w.GetExecution().GetWorkflowId(), RunId: w.GetExecution().GetRunId()},
		})
		if err != nil && !isNotFound(err) {
			return deleted, fmt.Errorf("delete workflow %s: %w", w.GetExecution().GetWorkflowId(), err)
		}
		deleted++
	}
	return deleted, nil
}

// belongs reports whether w belongs to the given execution of the run.
func (c *chain) belongs(w *workflowpb.WorkflowExecutionInfo, execution string) bool {
	id := w.GetExecution().GetWorkflowId()
	return strings.HasPrefix(id, spec.BarrierIDPrefix(c.id, execution)) ||
		strings.HasPrefix(id, spec.GroupIDPrefix(c.id, execution)) ||
		id == closure.QueueID(c.id, execution)
}

// executions returns the run's executions, oldest first.
func (c *chain) executions(ctx context.Context) ([]*workflowpb.WorkflowExecutionInfo, error) {
	all, err := c.workflows(ctx, "WorkflowId = "+quoted(c.id))
	if err != nil {
		return nil, err
	}
	var own []*workflowpb.WorkflowExecutionInfo
	for _, e := range all {
		if c.first != "" && c.first != e.GetExecution().GetRunId() {
			d, err := c.client.DescribeWorkflowExecution(ctx, c.id, e.GetExecution().GetRunId())
			if isNotFound(err) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if d.GetWorkflowExecutionInfo().GetFirstRunId() != c.first {
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

func (c *chain) workflows(ctx context.Context, query string) (found []*workflowpb.WorkflowExecutionInfo, err error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: lastPage}
	for {
		list, err := c.client.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("list the workflows of run %s: %w", c.id, err)
		}
		found = append(found, list.GetExecutions()...)
		if request.NextPageToken = list.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return found, nil
		}
	}
}
