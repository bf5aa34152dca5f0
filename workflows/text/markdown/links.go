package markdown

import (
	"net/url"
	"strconv"
	"strings"
)

// Workflow returns a link to the page of a workflow in Temporal's Web UI.
func Workflow(text, namespace, workflowID, runID string) string {
	return link(text, workflows(namespace)+"/"+url.PathEscape(workflowID)+"/"+url.PathEscape(runID))
}

// Below returns a link to the list of the workflows whose IDs begin with workflowID and a
// slash.
func Below(text, namespace, workflowID string) string {
	query := "`WorkflowId` STARTS_WITH " + strconv.Quote(workflowID+"/")
	return link(text, workflows(namespace)+"?query="+url.QueryEscape(query))
}

func workflows(namespace string) string {
	return "/namespaces/" + url.PathEscape(namespace) + "/workflows"
}

// link returns a link whose text is shown as it is. A target that is escaped may still
// have parentheses, which end it.
func link(text, target string) string {
	return "[" + Name(text) + "](" + strings.NewReplacer("(", "%28", ")", "%29").Replace(target) + ")"
}
