package devserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// gate admits only the server's user to the Web UI. The first request requires the token and sets a
// cookie. To keep out the pages of other sites, it also refuses requests that use another host name
// for this address or come from another origin.
type gate struct {
	token string // empty if every user of this machine may use the Web UI
	port  int
}

const tokenParameter = "token"

// cookie returns the cookie's name. Browsers send it to all ports of an address.
func (g gate) cookie() string { return fmt.Sprintf("clusterrun-ui-%d", g.port) }

// session returns a user's cookie value. It does not admit other users' programs, which receive the
// cookie if they serve another port of this address.
func (g gate) session(user string) string {
	sum := sha256.Sum256([]byte("clusterrun ui session of " + user + " " + g.token))
	return hex.EncodeToString(sum[:16])
}

// link returns the address that admits a browser.
func (g gate) link(base string) string {
	if g.token == "" {
		return base
	}
	return base + "/?" + tokenParameter + "=" + g.token
}

func (g gate) guard(inner http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isHere(r.Host) || r.Header.Get("Origin") != "" && !sameOrigin(r) {
			http.Error(w, "The Web UI does not serve this host name: use 127.0.0.1 or localhost.", http.StatusForbidden)
			return
		}
		query := r.URL.Query()
		if given := query.Get(tokenParameter); given != "" && same(given, g.token) {
			http.SetCookie(w, &http.Cookie{
				Name: g.cookie(), Value: g.session(peerOf(r)), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
				MaxAge: int(keyRotates.Seconds()),
			})
			query.Del(tokenParameter)
			// Use the path as received, because workflow IDs contain escaped slashes.
			to := "/" + strings.TrimLeft(r.URL.EscapedPath(), "/")
			if len(query) > 0 {
				to += "?" + query.Encode()
			}
			http.Redirect(w, r, to, http.StatusSeeOther)
			return
		}
		if c, err := r.Cookie(g.cookie()); g.token != "" && (err != nil || !same(c.Value, g.session(peerOf(r)))) {
			http.Error(w, "Only the user who started the Web UI can use it: open it by a link on the pages of `clusterrun ui`.", http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// isHere reports whether a Host header names this machine as localhost or by address. Any other
// name is refused, because anyone can own a DNS name for this address.
func isHere(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// sameOrigin reports whether a request comes from a page of the Web UI.
func sameOrigin(r *http.Request) bool {
	origin, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && origin.Host == r.Host
}
