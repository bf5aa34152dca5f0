package web

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// backPath leads from a page of Temporal's Web UI to the page of its run. The browser sends the
// address of the page that it comes from.
const backPath = "/from-temporal"

// backLink is the link that all pages of the Web UI get. Their policy for scripts allows styles.
// The Web UI replaces its own element of the page only.
const backLink = `<a href="` + backPath + `" data-sveltekit-reload style="position:fixed;right:16px;bottom:16px;z-index:100;padding:6px 12px;` +
	`border-radius:6px;background:#2b50cf;color:#fff;font:500 13px/1.4 system-ui,sans-serif;text-decoration:none">Back to clusterrun</a>`

// withBackLink adds the link to a page of the Web UI.
func withBackLink(text []byte) []byte {
	return bytes.Replace(text, []byte("</body>"), []byte(backLink+"</body>"), 1)
}

// back redirects from a page of Temporal's Web UI to ours.
func (s *Server) back(w http.ResponseWriter, r *http.Request) {
	to := "/"
	if workflow, execution, ok := s.workflowOf(r.Referer()); ok {
		to = s.pageOf(r.Context(), workflow, execution)
	}
	http.Redirect(w, r, to, http.StatusFound)
}

// workflowOf returns the workflow of a page of Temporal's Web UI. ok is false for the other pages
// and other namespaces.
func (s *Server) workflowOf(address string) (workflow, execution string, ok bool) {
	u, err := url.Parse(address)
	if err != nil {
		return "", "", false
	}
	rest, ok := strings.CutPrefix(u.EscapedPath(), workflowURL(TemporalPath, s.Namespace, "", ""))
	if !ok {
		return "", "", false
	}
	parts := strings.Split(rest, "/")
	if workflow, err = url.PathUnescape(parts[0]); err != nil || workflow == "" {
		return "", "", false
	}
	if len(parts) > 1 {
		execution = parts[1]
	}
	return workflow, execution, true
}

// pageOf returns the address of our page about a workflow.
func (s *Server) pageOf(ctx context.Context, workflow, execution string) string {
	if workflow == spec.FleetID(s.Queue) {
		return "/hosts"
	}
	run := spec.RunOfWorkflow(workflow)
	to := runURL(run)
	if run != workflow || execution == "" {
		return to
	}
	// The page is about all executions of a run, from the first.
	ctx, cancel := context.WithTimeout(ctx, askedFor)
	defer cancel()
	if found, err := s.Client.DescribeWorkflowExecution(ctx, workflow, execution); err == nil {
		to += "?" + url.Values{"execution": {found.GetWorkflowExecutionInfo().GetFirstRunId()}}.Encode()
	}
	return to
}
