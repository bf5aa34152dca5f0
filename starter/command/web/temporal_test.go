package web

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Links lead to the same page in Temporal's Web UI, with the current token.
func TestTheWayToTemporal(t *testing.T) {
	const path = "/namespaces/default/workflows/a%2Fb"
	s := &Server{Options: Options{Namespace: "default"}}
	get := func(target string) *http.Response {
		w := httptest.NewRecorder()
		s.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		return w.Result()
	}
	assert.Equal(t, http.StatusNotFound, get(path).StatusCode)
	assert.Empty(t, s.temporalURL(runsQuery))
	for _, c := range []struct{ ui, target, want string }{
		{"http://127.0.0.1:8234/?token=word", path, "http://127.0.0.1:8234" + path + "?token=word"},
		{"http://127.0.0.1:8234/?token=word", path + "/last/history?page=1", "http://127.0.0.1:8234" + path + "/last/history?page=1&token=word"},
		{"https://temporal.example/ui", path, "https://temporal.example/ui" + path},
	} {
		require.NoError(t, s.LinkTemporal(c.ui))
		answer := get(c.target)
		assert.Equal(t, http.StatusFound, answer.StatusCode)
		assert.Equal(t, c.want, answer.Header.Get("Location"))
	}
	assert.Equal(t, path+"/last", s.temporalURL(workflowPath("a/b", "last")))
	require.Error(t, s.LinkTemporal("http://[::1"))
}
