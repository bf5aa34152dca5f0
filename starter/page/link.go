package page

import "io"

// RenderLink writes a page for a frame on the pages of Temporal's Web UI, with a link to the run
// that the page around it shows.
func RenderLink(w io.Writer) error {
	return render(w, "link", struct{ CSS, JS string }{assetURL("link.css"), assetURL("link.js")})
}
