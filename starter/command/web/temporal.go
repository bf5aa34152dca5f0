package web

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
)

const (
	// TemporalPath is the path of Temporal's Web UI.
	TemporalPath = "/temporal"
	// codecPath is the path at which the Web UI decodes what is encoded.
	codecPath = "/codec/"
)

// temporalUI is Temporal's Web UI, which listens on a port of its own at the root, and is served
// below [TemporalPath].
type temporalUI struct {
	// link is the link with its token. It changes when the server is restarted.
	link atomic.Pointer[url.URL]
}

// set sets the link of the Web UI. It returns an error for a link that is no URL.
func (t *temporalUI) set(link string) error {
	u, err := url.Parse(link)
	if err == nil && u.Host == "" {
		err = fmt.Errorf("%q has no host", link)
	}
	if err != nil {
		return fmt.Errorf("the link of Temporal's Web UI: %w", err)
	}
	t.link.Store(u)
	return nil
}

// handles reports whether a request is for the Web UI.
func (t *temporalUI) handles(r *http.Request) bool {
	return t.link.Load() != nil && (strings.HasPrefix(r.URL.Path, TemporalPath+"/") || strings.HasPrefix(r.URL.Path, codecPath))
}

// handler passes requests on to the Web UI, with its cookie instead of ours, which has a name.
func (t *temporalUI) handler(own string, readOnly bool) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to := t.link.Load()
			r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
			r.Out.Host = r.In.Host // which the origin of a request has to be
			r.Out.Header.Del("Accept-Encoding")
			r.Out.Header.Del("Cookie")
			for _, c := range r.In.Cookies() {
				if c.Name != own {
					r.Out.AddCookie(c)
				}
			}
			r.Out.AddCookie(&http.Cookie{Name: "clusterrun-ui-" + to.Port(), Value: to.Query().Get(tokenParameter)})
		},
		ModifyResponse: func(r *http.Response) error { return adapt(r, readOnly) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, http.StatusBadGateway, "Temporal's Web UI does not answer: "+err.Error())
		},
	}
	below := http.StripPrefix(TemporalPath, proxy)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, codecPath):
			proxy.ServeHTTP(w, r)
		case readOnly && changes(r):
			refuse(w, http.StatusForbidden, "These pages were started with --read-only.")
		default:
			below.ServeHTTP(w, r)
		}
	})
}

// changes reports whether a request to the Web UI may change something. Queries do not, although
// they are sent by POST.
func changes(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false
	}
	return r.Method != http.MethodPost || !strings.Contains(r.URL.Path, "/workflows/") || !strings.Contains(r.URL.Path, "/query/")
}

// workflowURL returns the page of a workflow below a base, or "" if there is no Web UI.
func workflowURL(base, namespace, id, execution string) string {
	if base == "" {
		return ""
	}
	to := base + "/namespaces/" + url.PathEscape(namespace) + "/workflows/" + url.PathEscape(id)
	if execution != "" {
		to += "/" + url.PathEscape(execution)
	}
	return to
}

// runsURL returns the list of runs in the Web UI.
func runsURL(base, namespace string) string {
	if base == "" {
		return ""
	}
	view := url.Values{"query": {"`WorkflowType`=\"ClusterRun\""}, "savedQuery": {"Runs"}}
	return base + "/namespaces/" + url.PathEscape(namespace) + "/workflows?" + view.Encode()
}
