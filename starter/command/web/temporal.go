package web

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
)

// LinkTemporal makes the pages link to Temporal's Web UI. The address contains a token if it
// belongs to the embedded server. LinkTemporal may be called again.
func (s *Server) LinkTemporal(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return fmt.Errorf("the address of Temporal's Web UI: %w", err)
	}
	s.temporal.Store(u)
	return nil
}

// toTemporal redirects to Temporal's Web UI, so that pages do not contain its token. Messages of
// runs also contain such links.
func (s *Server) toTemporal(w http.ResponseWriter, r *http.Request) {
	ui := s.temporal.Load()
	if ui == nil {
		s.message(w, http.StatusNotFound, "There is no such page", "These pages have no address of Temporal's Web UI.")
		return
	}
	to, query := ui.JoinPath(r.URL.EscapedPath()), r.URL.Query()
	maps.Copy(query, ui.Query())
	to.RawQuery = query.Encode()
	http.Redirect(w, r, to.String(), http.StatusFound)
}

// temporalURL returns the path of the namespace's workflows in Temporal's Web UI, with rest
// appended, or "" if there is no Web UI.
func (s *Server) temporalURL(rest string) string {
	if s.temporal.Load() == nil {
		return ""
	}
	return "/namespaces/" + url.PathEscape(s.Namespace) + "/workflows" + rest
}

// workflowPath returns the last part of a workflow's path.
func workflowPath(id, execution string) string {
	to := "/" + url.PathEscape(id)
	if execution != "" {
		to += "/" + url.PathEscape(execution)
	}
	return to
}

// runsQuery selects runs in a list of workflows.
var runsQuery = "?" + url.Values{"query": {"`WorkflowType`=\"ClusterRun\""}, "savedQuery": {"Runs"}}.Encode()
