package temporalapi

import (
	"context"
	"strings"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// listPage is the size of a page of [Workflows].
const listPage = 1000

// Workflows returns all workflows that match a query in the server's language.
func Workflows(ctx context.Context, c client.Client, query string) (found []*workflowpb.WorkflowExecutionInfo, err error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: listPage}
	for {
		list, err := c.ListWorkflow(ctx, request)
		if err != nil {
			return nil, err
		}
		found = append(found, list.GetExecutions()...)
		if request.NextPageToken = list.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return found, nil
		}
	}
}

// Quoted returns a text as a literal of the server's query language.
func Quoted(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
