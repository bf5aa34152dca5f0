package web

import (
	"net/http"
	"strings"

	"github.com/clusterrun/clusterrun/starter/page"
)

// assetName returns the name of the requested asset.
func assetName(r *http.Request) (name string, ok bool) {
	name, ok = strings.CutPrefix(r.URL.Path, page.AssetsPath)
	return name, ok && r.Method == http.MethodGet && name != "" && !strings.HasSuffix(name, "/")
}
