package codec_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/clusterrun/clusterrun/activities/trust/codec"
	"github.com/clusterrun/clusterrun/tests/must"
)

const origin = "http://127.0.0.1:8080"

// ask returns a request's response.
func ask(t *testing.T, h http.Handler, method, path, body string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8081"
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestServer(t *testing.T) {
	k, _ := keys(t, line("a", 32))
	s := &codec.Server{Keys: k, Token: "word", Origins: []string{origin}}
	body := must.Get(protojson.Marshal(&commonpb.Payloads{Payloads: []*commonpb.Payload{encode(t, k, "canary"), payload(t, "plain")}}))(t)
	const auth, bearer = "Authorization", "Bearer word"

	answer := ask(t, s, "POST", "/decode", string(body), auth, bearer)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	b := must.Get(io.ReadAll(answer.Body))(t)
	var decoded commonpb.Payloads
	require.NoError(t, protojson.Unmarshal(b, &decoded))
	assert.JSONEq(t, `"canary"`, string(decoded.Payloads[0].Data))
	assert.JSONEq(t, `"plain"`, string(decoded.Payloads[1].Data))

	answer = ask(t, s, "POST", "/encode", string(b), auth, bearer)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	b = must.Get(io.ReadAll(answer.Body))(t)
	assert.NotContains(t, string(b), "canary")

	for name, header := range map[string][]string{
		"no token": nil, "another": {auth, "Bearer sword"}, "half of it": {auth, "Bearer wor"}, "none": {auth, "Bearer "},
		"no scheme": {auth, "word"}, "cookie": {"Cookie", "clusterrun-codec=sword"}, "the token as a cookie": {"Cookie", "clusterrun-codec=word"},
	} {
		assert.Equal(t, http.StatusUnauthorized, ask(t, s, "POST", "/decode", string(body), header...).StatusCode, name)
	}
	for _, foreign := range []string{"http://evil.example", "http://127.0.0.1:8081", "null", origin + ".evil.example"} {
		answer = ask(t, s, "POST", "/decode", string(body), auth, bearer, "Origin", foreign)
		assert.Equal(t, http.StatusForbidden, answer.StatusCode, foreign)
		assert.Empty(t, answer.Header.Get("Access-Control-Allow-Origin"))
	}

	// A browser uses the link once, then a cookie, for the pages of one origin.
	answer = ask(t, s, "GET", "/?token=word", "")
	require.Equal(t, http.StatusSeeOther, answer.StatusCode)
	assert.Equal(t, "/", answer.Header.Get("Location"))
	require.Len(t, answer.Cookies(), 1)
	cookie := answer.Cookies()[0]
	assert.True(t, cookie.HttpOnly)
	assert.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	assert.Empty(t, ask(t, s, "GET", "/?token=sword", "").Cookies())
	answer = ask(t, s, "OPTIONS", "/decode", "", "Origin", origin, "Access-Control-Request-Method", "POST")
	assert.Equal(t, http.StatusNoContent, answer.StatusCode)
	assert.Contains(t, answer.Header.Get("Access-Control-Allow-Headers"), "X-Namespace")
	answer = ask(t, s, "POST", "/decode", string(body), "Origin", origin, "Cookie", cookie.Name+"="+cookie.Value)
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	real := httptest.NewServer(s)
	defer real.Close()
	r := must.Get(http.NewRequest(http.MethodGet, real.URL, nil))(t)
	r.AddCookie(cookie)
	assert.Equal(t, http.StatusUnauthorized, must.Get(http.DefaultClient.Do(r))(t).StatusCode, "the cookie is of an unknown user")
	assert.Equal(t, origin, answer.Header.Get("Access-Control-Allow-Origin"))
	assert.Equal(t, "true", answer.Header.Get("Access-Control-Allow-Credentials"))

	assert.Equal(t, http.StatusBadRequest, ask(t, s, "POST", "/decode", "{", auth, bearer).StatusCode)
	assert.Equal(t, http.StatusNotFound, ask(t, s, "POST", "/other", string(body), auth, bearer).StatusCode)
}
