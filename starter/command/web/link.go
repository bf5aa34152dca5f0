package web

import (
	"net/http"
	"strings"

	"github.com/clusterrun/clusterrun/starter/page"
)

// linkPath is the path of the page that Temporal's Web UI shows in a frame on the pages of
// workflows.
const linkPath = TemporalPath + "-link"

// linkFromTemporal serves a link to the page of the run whose workflow the page around the frame
// shows. A script finds that out: the Web UI tells it only to pages on other machines.
func (s *Server) linkFromTemporal(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("X-Frame-Options", "SAMEORIGIN")
	h.Set("Content-Security-Policy", strings.ReplaceAll(page.CSP(page.Live), "frame-ancestors 'none'", "frame-ancestors 'self'"))
	writeHTML(w, http.StatusOK)
	_ = page.RenderLink(w)
}
