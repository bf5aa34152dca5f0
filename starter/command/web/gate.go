package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/starter/page"
)

// gate admits requests from the user with the token.
type gate struct {
	token string
	port  int
	// otherOrigins refuses requests from other origins that change something.
	otherOrigins *http.CrossOriginProtection
}

func newGate(token string, port int) gate {
	return gate{token: token, port: port, otherOrigins: http.NewCrossOriginProtection()}
}

const (
	tokenParameter = "token"
	// cookieLasts is how long a browser keeps the cookie.
	cookieLasts = 30 * 24 * time.Hour
)

// cookie returns the cookie's name. Browsers send a cookie to all ports of an address.
func (g gate) cookie() string { return fmt.Sprintf("clusterrun-%d", g.port) }

// session returns the cookie's value for a user. It does not admit other users' programs, which may
// serve another port of this machine and thereby receive the cookie.
func (g gate) session(user string) string { return g.derived("session of " + user) }

// peerOf returns the user who runs the program that sent a request; see [proc.PeerUser].
func peerOf(r *http.Request) string {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return proc.PeerUser(r.RemoteAddr, local)
}

// derived returns a secret for one purpose.
func (g gate) derived(purpose string) string {
	sum := sha256.Sum256([]byte("clusterrun " + purpose + " " + g.token))
	return hex.EncodeToString(sum[:16])
}

// link returns the address that admits a browser.
func (g gate) link() string {
	return fmt.Sprintf("http://%s/?%s=%s", net.JoinHostPort("127.0.0.1", fmt.Sprint(g.port)), tokenParameter, g.token)
}

// formToken returns the token that forms send with their requests.
func (g gate) formToken() string { return g.derived("form") }

// sentForm reports whether a form on our pages sent the request.
func (g gate) sentForm(r *http.Request) bool { return same(r.PostFormValue("token"), g.formToken()) }

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (g gate) guard(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if !isHere(r.Host) || origin != "" && !isOrigin(origin, r.Host) || g.otherOrigins.Check(r) != nil {
			refuse(w, http.StatusForbidden, "These pages do not use this host name: use 127.0.0.1 or localhost.")
			return
		}
		query := r.URL.Query()
		if given := query.Get(tokenParameter); given != "" && same(given, g.token) {
			http.SetCookie(w, &http.Cookie{
				Name: g.cookie(), Value: g.session(peerOf(r)), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
				MaxAge: int(cookieLasts.Seconds()),
			})
			query.Del(tokenParameter)
			forward(w, localTarget(r.URL.EscapedPath(), query))
			return
		}
		if c, err := r.Cookie(g.cookie()); err != nil || !same(c.Value, g.session(peerOf(r))) {
			if r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Method == http.MethodGet {
				// The request comes from a link on another site. The browser sends the cookie if
				// this page forwards to the same address.
				forward(w, localTarget(r.URL.EscapedPath(), query))
				return
			}
			refuse(w, http.StatusUnauthorized, "These pages are for the user who started them: open the link that `clusterrun ui` prints.")
			return
		}
		inner.ServeHTTP(w, r)
	})
}

// localTarget returns a path with a query. The path is left unchanged, because run IDs may
// contain escaped slashes.
func localTarget(path string, query url.Values) string {
	to := "/" + strings.TrimLeft(path, `/\`)
	if len(query) > 0 {
		to += "?" + query.Encode()
	}
	return to
}

// forward makes the browser request another of these pages. A redirect would still count as a
// request from the site with the link, so the browser would not send the cookie.
func forward(w http.ResponseWriter, to string) {
	secure(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = forwarding.Execute(w, to)
}

var forwarding = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><meta charset="utf-8"><title>clusterrun</title><meta http-equiv="refresh" content="0;url={{.}}"><p><a href="{{.}}">Continue</a></p></html>
`))

// refuse answers a request from outside without revealing anything else.
func refuse(w http.ResponseWriter, status int, text string) {
	secure(w.Header())
	http.Error(w, text, status)
}

// secure sets the headers that all pages share.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", page.CSP(page.Live))
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // otherwise forms would lack an origin
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// isHere reports whether a Host header names this machine without DNS: as localhost or by a
// loopback address.
func isHere(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// isOrigin reports whether an Origin header matches the request's host.
func isOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host == host
}
