package codec

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"strings"

	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/activities/system/proc"
)

const (
	// maxRequest limits a request, in bytes.
	maxRequest = 32 << 20
	// cookie is the name of the cookie that proves that a browser has the token.
	cookie = "clusterrun-codec"
)

// Server is a Temporal remote codec. It encodes and decodes at POST /encode and POST /decode.
type Server struct {
	Keys *Keys
	// Token is required from all clients, as "Authorization: Bearer TOKEN" or, from a browser that
	// has visited /?token=TOKEN, as a cookie.
	Token string
	// Origins lists the origins with pages that may send requests.
	Origins []string
}

// ServeHTTP answers a request. It refuses requests for other host names, because anyone's DNS name
// may resolve to this machine.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if host, _, err := net.SplitHostPort(r.Host); err != nil || host != "localhost" && !net.ParseIP(host).IsLoopback() {
		http.Error(w, "The codec server does not serve this host name: use 127.0.0.1 or localhost.", http.StatusForbidden)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !slices.Contains(s.Origins, origin) {
			http.Error(w, "Pages from this origin are not allowed; see --origin in `clusterrun server codec --help`.", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Namespace")
		h.Set("Vary", "Origin")
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	if given := r.URL.Query().Get("token"); is(given, s.Token) && r.Method == http.MethodGet {
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.cookie(r), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		// Redirect, to keep the token out of the browser's history.
		w.Header().Set("Cache-Control", "no-store")
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	if !s.allows(r) {
		http.Error(w, "A token is required; `clusterrun server codec` prints it.", http.StatusUnauthorized)
		return
	}
	if r.URL.Path == "/" && r.Method == http.MethodGet {
		_, _ = w.Write([]byte("This browser can now decode.\n"))
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
	converter.NewPayloadCodecHTTPHandler(s.Keys).ServeHTTP(w, r)
}

// allows reports whether the client has the token.
func (s *Server) allows(r *http.Request) bool {
	if c, err := r.Cookie(cookie); err == nil && is(c.Value, s.cookie(r)) {
		return true
	}
	given, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return isBearer && is(given, s.Token)
}

// cookie returns the cookie's value. It is accepted only from programs of the same user, because
// browsers also send cookies to other ports on this machine.
func (s *Server) cookie(r *http.Request) string {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	sum := sha256.Sum256([]byte("cookie of " + proc.PeerUser(r.RemoteAddr, local) + " " + s.Token))
	return hex.EncodeToString(sum[:])
}

func is(given, secret string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(secret)) == 1
}
