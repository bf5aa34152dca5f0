package markdown

import (
	"net/url"
	"strconv"
	"strings"
)

// Workflow returns a link to a workflow's page in Temporal's Web UI.
func Workflow(text, namespace, workflowID, runID string) string {
	return link(text, workflows(namespace)+"/"+url.PathEscape(workflowID)+"/"+url.PathEscape(runID))
}

// Below returns a link to the list of workflows with the ID prefix workflowID and a slash.
func Below(text, namespace, workflowID string) string {
	query := "`WorkflowId` STARTS_WITH " + strconv.Quote(workflowID+"/")
	return link(text, workflows(namespace)+"?query="+url.QueryEscape(query))
}

func workflows(namespace string) string {
	return "/namespaces/" + url.PathEscape(namespace) + "/workflows"
}

// link returns a link with literal text. URL escaping preserves parentheses, which would end the
// link.
func link(text, target string) string {
	return "[" + Name(text) + "](" + strings.NewReplacer("(", "%28", ")", "%29").Replace(target) + ")"
}
