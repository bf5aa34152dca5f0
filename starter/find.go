package starter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// AmbiguousError reports that the IDs of several runs have the same beginning.
type AmbiguousError struct {
	Beginning string
	RunIDs    []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q is ambiguous; it matches %s. Write more of the ID", e.Beginning, shorten.List(e.RunIDs, 5))
}

// Find returns the ID of the run with that ID, of the only run whose ID begins with it, or of
// the latest run that the schedule with that ID has started. It fails with [*NotFoundError] or
// [*AmbiguousError].
func Find(ctx context.Context, c client.Client, beginning string) (string, error) {
	_, err := c.DescribeWorkflowExecution(ctx, beginning, "")
	if !servererror.IsNotFound(err) {
		return beginning, err
	}
	if r := Get(c, beginning, ""); r.locate(ctx) == nil && r.task != "" {
		return beginning, nil
	}
	types := fmt.Sprintf("'%s', '%s'", spec.WorkflowType, spec.SweepWorkflowType)
	if strings.Contains(beginning, ".") {
		types += fmt.Sprintf(", '%s'", spec.TrialWorkflowType)
	}
	request := &workflowservice.ListWorkflowExecutionsRequest{PageSize: 100, Query: fmt.Sprintf(
		"WorkflowType IN (%s) AND WorkflowId STARTS_WITH %s", types, quoted(beginning))}
	var ids []string
	for {
		r, err := c.ListWorkflow(ctx, request)
		if err != nil {
			return "", fmt.Errorf("look for runs that begin with %s: %w", beginning, err)
		}
		for _, e := range r.GetExecutions() {
			if id := e.GetExecution().GetWorkflowId(); !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		if request.NextPageToken = r.GetNextPageToken(); len(request.NextPageToken) == 0 || len(ids) > 100 {
			break
		}
	}
	switch len(ids) {
	case 0:
		return "", &NotFoundError{RunID: beginning}
	case 1:
		return ids[0], nil
	}
	latest, err := latestOf(ctx, c, beginning)
	if err == nil && latest == "" {
		err = &AmbiguousError{beginning, ids}
	}
	return latest, err
}

// Hint suggests a name if the server does not know the ID of a run: a schedule of that ID, or a
// run or schedule with a similar one. It returns "" if it finds none.
func Hint(ctx context.Context, c client.Client, unknown string) string {
	schedules, err := Schedules(ctx, c)
	if err != nil {
		return ""
	}
	var ids []string
	for _, s := range schedules {
		if s.ID == unknown {
			return fmt.Sprintf("%s is a schedule; `clusterrun schedule delete %s` ends it, and `clusterrun list` shows its runs", unknown, unknown)
		}
		ids = append(ids, s.ID)
	}
	r, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: lastPage, Query: fmt.Sprintf("WorkflowType IN ('%s', '%s')", spec.WorkflowType, spec.SweepWorkflowType)})
	if err != nil {
		return ""
	}
	for _, e := range r.GetExecutions() {
		ids = append(ids, e.GetExecution().GetWorkflowId())
	}
	if near := spec.Nearest(unknown, ids); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return ""
}

// latestOf returns the ID of the latest run that a schedule has started, or "".
func latestOf(ctx context.Context, c client.Client, schedule string) (string, error) {
	// The server lists open runs first, and then the others by the time of their end, the
	// latest first.
	r, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: 100, Query: fmt.Sprintf(
		"WorkflowType = '%s' AND TemporalScheduledById = %s", spec.WorkflowType, quoted(schedule))})
	if err != nil || len(r.GetExecutions()) == 0 {
		return "", err
	}
	latest := slices.MaxFunc(r.GetExecutions(), func(a, b *workflowpb.WorkflowExecutionInfo) int {
		return a.GetStartTime().AsTime().Compare(b.GetStartTime().AsTime())
	})
	return latest.GetExecution().GetWorkflowId(), nil
}
