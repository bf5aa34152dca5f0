package web

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter/command/cli"
)

const startPage = `<html><head><meta http-equiv="content-security-policy" content="script-src 'strict-dynamic' 'DIGEST'"><link href="/_app/start.js"></head><body><script>
x = { base: "" }; import("/_app/app.js");
</script></body></html>`

// browser returns what a handler answers.
func browser(t *testing.T, h http.Handler, method, path string, cookies ...*http.Cookie) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:8233"+path, nil)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// The Web UI works below a path with the policy for scripts that it has, gets its own cookie and
// not ours, and may be kept from changes.
func TestTemporalBelowAPath(t *testing.T) {
	var asked []string
	var port string
	ui := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.EscapedPath()+" "+r.Host)
		names := map[string]string{}
		for _, c := range r.Cookies() {
			names[c.Name] = c.Value
		}
		assert.NotContains(t, names, "clusterrun-8233")
		assert.Equal(t, "word", names["clusterrun-ui-"+port])
		assert.Equal(t, "theirs", names["_csrf"])
		if r.URL.Path == settingsPath {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"Version":"2","DisableWriteActions":false}`)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, strings.Replace(startPage, "DIGEST", digestOfScript([]byte(startPage)), 1))
	}))
	defer ui.Close()
	_, port, _ = strings.Cut(strings.TrimPrefix(ui.URL, "http://"), ":")
	var temporal temporalUI
	require.NoError(t, temporal.set(ui.URL+"/?token=word"))
	cookies := []*http.Cookie{{Name: "clusterrun-8233", Value: "ours"}, {Name: "_csrf", Value: "theirs"}}
	h := temporal.handler("clusterrun-8233", true)

	status, page := browser(t, h, "GET", "/temporal/namespaces/default/workflows/a%2Fb", cookies...)
	require.Equal(t, http.StatusOK, status, page)
	assert.Equal(t, []string{"GET /namespaces/default/workflows/a%2Fb 127.0.0.1:8233"}, asked)
	assert.Contains(t, page, `base: "/temporal"`)
	assert.Contains(t, page, `href="/temporal/_app/start.js"`)
	assert.Contains(t, page, digestOfScript([]byte(page)))
	assert.Contains(t, page, backLink)

	_, settings := browser(t, h, "GET", "/temporal/api/v1/settings", cookies...)
	assert.JSONEq(t, `{"Version":"2","DisableWriteActions":true}`, settings)
	asked = nil
	status, _ = browser(t, h, "POST", "/temporal/api/v1/namespaces/default/workflows/iris/terminate", cookies...)
	assert.Equal(t, http.StatusForbidden, status)
	assert.Empty(t, asked)
	status, _ = browser(t, h, "POST", "/temporal/api/v1/namespaces/default/workflows/iris/query/status", cookies...)
	assert.Equal(t, http.StatusOK, status)
}

// first is a server that knows the first execution of every run.
type first struct{ client.Client }

func (first) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflow.WorkflowExecutionInfo{FirstRunId: "first"}}, nil
}

func TestTheWayBack(t *testing.T) {
	s := &Server{Options: Options{App: &cli.App{}, Client: first{}, Namespace: "default", Queue: "clusterrun"}}
	const ui = "http://127.0.0.1:8233/temporal"
	for from, want := range map[string]string{
		"":                                      "/",
		":none":                                 "/",
		ui + "/namespaces/default/workflows":    "/",
		ui + "/namespaces/default/workflows/":   "/",
		ui + "/namespaces/other/workflows/iris": "/",
		ui + "/namespaces/default/workflows/iris":                                   "/runs/iris",
		ui + "/namespaces/default/workflows/a%2Fb/last/history?page=1":              "/runs/a%2Fb?execution=first",
		ui + "/namespaces/default/workflows/iris%2Fbarrier%2F4ee9%2F2%2Fx%2F8/last": "/runs/iris",
		ui + "/namespaces/default/workflows/clusterrun%2Ffleet/last/workers":        "/hosts",
	} {
		r := httptest.NewRequest(http.MethodGet, backPath, nil)
		r.Header.Set("Referer", from)
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, r)
		assert.Equal(t, http.StatusFound, w.Code, from)
		assert.Equal(t, want, w.Header().Get("Location"), from)
	}
}

func TestAnotherStartPage(t *testing.T) {
	_, err := adaptPage([]byte("<html></html>"))
	assert.ErrorContains(t, err, "its start page is not the one")
}

func TestALinkThatIsNone(t *testing.T) {
	var temporal temporalUI
	assert.Error(t, temporal.set("here"))
	assert.False(t, temporal.handles(httptest.NewRequest("GET", "/temporal/", nil)))
}
