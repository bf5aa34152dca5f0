package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

const secret = "0123456789abcdef0123456789abcdef"

// request returns a gate's answer to a request. Each header is "Name: value".
func request(g gate, method, target string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	r.Host = "127.0.0.1:8233"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	g.guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })).ServeHTTP(w, r)
	return w.Result()
}

func TestWhoMayPassTheGate(t *testing.T) {
	g := newGate(secret, 8233)
	session := g.session("")
	cookie := "Cookie: clusterrun-8233=" + session
	const in, out, away = http.StatusTeapot, http.StatusUnauthorized, http.StatusForbidden
	for name, c := range map[string]struct {
		method, target string
		headers        []string
		want           int
	}{
		"cookie":                      {"GET", "/", []string{cookie}, in},
		"nothing":                     {"GET", "/", nil, out},
		"wrong cookie":                {"GET", "/", []string{"Cookie: clusterrun-8233=" + strings.Repeat("0", 32)}, out},
		"part of the cookie":          {"GET", "/", []string{"Cookie: clusterrun-8233=" + session[:31]}, out},
		"empty cookie":                {"GET", "/", []string{"Cookie: clusterrun-8233="}, out},
		"cookie of another port":      {"GET", "/", []string{"Cookie: clusterrun-8234=" + session}, out},
		"token as the cookie":         {"GET", "/", []string{"Cookie: clusterrun-8233=" + secret}, out},
		"cookie of another user":      {"GET", "/", []string{"Cookie: clusterrun-8233=" + g.session("1000")}, out},
		"wrong token":                 {"GET", "/?token=x", nil, out},
		"empty token":                 {"GET", "/?token=", nil, out},
		"other name":                  {"GET", "/", []string{cookie, "Host: rebound.example:8233"}, away},
		"other name, with the token":  {"GET", "/?token=" + secret, []string{"Host: rebound.example:8233"}, away},
		"name below localhost":        {"GET", "/", []string{cookie, "Host: x.localhost:8233"}, away},
		"address of the network":      {"GET", "/", []string{cookie, "Host: 10.0.0.1:8233"}, away},
		"localhost":                   {"GET", "/", []string{cookie, "Host: localhost:8233"}, in},
		"other loopback address":      {"GET", "/", []string{cookie, "Host: [::1]:8233"}, in},
		"own origin":                  {"POST", "/", []string{cookie, "Origin: http://127.0.0.1:8233"}, in},
		"other origin":                {"POST", "/", []string{cookie, "Origin: http://evil.example"}, away},
		"other port":                  {"POST", "/", []string{cookie, "Origin: http://127.0.0.1:9999"}, away},
		"opaque origin":               {"POST", "/", []string{cookie, "Origin: null"}, away},
		"form of another site":        {"POST", "/", []string{cookie, "Sec-Fetch-Site: cross-site"}, away},
		"form of another port":        {"POST", "/", []string{cookie, "Sec-Fetch-Site: same-site"}, away},
		"image on another site":       {"GET", "/", []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"}, out},
		"post from a link, no cookie": {"POST", "/", []string{"Sec-Fetch-Mode: navigate"}, out},
	} {
		t.Run(name, func(t *testing.T) {
			answer := request(g, c.method, c.target, c.headers...)
			assert.Equal(t, c.want, answer.StatusCode)
			assert.Empty(t, answer.Cookies())
			if c.want != in {
				assert.Equal(t, "DENY", answer.Header.Get("X-Frame-Options"))
				assert.Contains(t, answer.Header.Get("Content-Security-Policy"), "default-src 'none'")
			}
		})
	}
}

// The link gives the browser a cookie that only our pages can use, and leads to the same page
// without the token.
func TestTheLink(t *testing.T) {
	g := newGate(secret, 8233)
	link := must.Get(url.Parse(g.link()))(t)
	assert.Equal(t, "127.0.0.1:8233", link.Host)
	for target, to := range map[string]string{
		link.RequestURI():                                      "/",
		"/runs/a%2Fb?stderr=1&token=" + secret:                 "/runs/a%2Fb?stderr=1",
		"http://127.0.0.1:8233//evil.example/?token=" + secret: "/evil.example/",
	} {
		answer := request(g, "GET", target)
		require.Equal(t, http.StatusOK, answer.StatusCode)
		require.Len(t, answer.Cookies(), 1)
		c := answer.Cookies()[0]
		assert.Equal(t, g.session(""), c.Value)
		assert.True(t, c.HttpOnly)
		assert.Equal(t, http.SameSiteStrictMode, c.SameSite)
		body := bodyOf(t, answer)
		assert.Contains(t, body, `content="0;url=`+to+`"`)
		assert.NotContains(t, body, secret)
		assert.Equal(t, "same-origin", answer.Header.Get("Referrer-Policy"))
	}
}

// A link on another site leads a browser with the cookie to the page.
func TestALinkOnAnotherSite(t *testing.T) {
	answer := request(newGate(secret, 8233), "GET", "/runs/iris?stderr=1", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	assert.Empty(t, answer.Cookies())
	assert.Contains(t, bodyOf(t, answer), `content="0;url=/runs/iris?stderr=1"`)
}

func bodyOf(t *testing.T, answer *http.Response) string {
	t.Helper()
	b := must.Get(io.ReadAll(answer.Body))(t)
	return string(b)
}
