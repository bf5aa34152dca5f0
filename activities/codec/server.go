package codec

import (
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"

	"go.temporal.io/sdk/converter"
)

const (
	// maxRequest bounds what is decoded at a time, in bytes.
	maxRequest = 32 << 20
	// cookie is by which a browser shows that it has had the token.
	cookie = "clusterrun-codec"
)

// Server decodes and encodes for others, as Temporal's remote codecs do: POST /decode and
// POST /encode.
type Server struct {
	Keys *Keys
	// Token is asked of everybody, as "Authorization: Bearer TOKEN" or, of a browser that
	// was once at /?token=TOKEN, as a cookie.
	Token string
	// Origins are those whose pages may ask.
	Origins []string
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if origin := r.Header.Get("Origin"); origin != "" {
		if !slices.Contains(s.Origins, origin) {
			http.Error(w, "Pages of this origin may not ask; see --origin of clusterrun codec-server.", http.StatusForbidden)
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
	if given := r.URL.Query().Get("token"); given != "" && s.is(given) && r.Method == http.MethodGet {
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: s.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		_, _ = w.Write([]byte("This browser may decode now.\n"))
		return
	}
	if !s.allows(r) {
		http.Error(w, "It wants a token: the one that clusterrun codec-server prints.", http.StatusUnauthorized)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
	converter.NewPayloadCodecHTTPHandler(s.Keys).ServeHTTP(w, r)
}

// allows reports whether whoever asks has the token.
func (s *Server) allows(r *http.Request) bool {
	if c, err := r.Cookie(cookie); err == nil && s.is(c.Value) {
		return true
	}
	given, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return isBearer && s.is(given)
}

func (s *Server) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) == 1
}
