package starter

import (
	"context"
	"fmt"
	"slices"
	"strings"

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

// Find returns the ID of the run with that ID, or of the only run whose ID begins with it. It
// fails with [*NotFoundError] or [*AmbiguousError].
func Find(ctx context.Context, c client.Client, beginning string) (string, error) {
	_, err := c.DescribeWorkflowExecution(ctx, beginning, "")
	if !servererror.IsNotFound(err) {
		return beginning, err
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
	return "", &AmbiguousError{beginning, ids}
}

// Hint suggests a run with a similar ID if the server does not know the ID of a run. It returns ""
// if it finds none.
func Hint(ctx context.Context, c client.Client, unknown string) string {
	r, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: lastPage, Query: fmt.Sprintf("WorkflowType IN ('%s', '%s')", spec.WorkflowType, spec.SweepWorkflowType)})
	if err != nil {
		return ""
	}
	var ids []string
	for _, e := range r.GetExecutions() {
		ids = append(ids, e.GetExecution().GetWorkflowId())
	}
	if near := spec.Nearest(unknown, ids); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	return ""
}
