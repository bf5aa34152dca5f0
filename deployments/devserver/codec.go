package devserver

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
)

// A Web UI decodes by the remote codec that the variables of the temporal CLI name. The
// browser asks the Web UI for it, behind its gate, and that asks the codec: so the codec
// needs to know no origin, and the browser no other token.
const (
	codecEndpoint = "TEMPORAL_CODEC_ENDPOINT"
	codecAuth     = "TEMPORAL_CODEC_AUTH"
	codecPath     = "/codec"
)

// withCodec returns the Web UI with its codec, if it has one.
func withCodec(ui http.Handler) (http.Handler, error) {
	endpoint := os.Getenv(codecEndpoint)
	if endpoint == "" {
		return ui, nil
	}
	to, err := url.Parse(endpoint)
	if err != nil || to.Host == "" {
		return nil, fmt.Errorf("%s=%s is not a URL; give one such as http://127.0.0.1:8081, or unset it", codecEndpoint, endpoint)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Del("Cookie")
		r.Out.Header.Del("Origin")
		if auth := os.Getenv(codecAuth); auth != "" {
			r.Out.Header.Set("Authorization", auth)
		}
	}}
	decode := http.StripPrefix(codecPath, proxy)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, codecPath+"/") {
			decode.ServeHTTP(w, r)
		} else {
			ui.ServeHTTP(w, r)
		}
	}), nil
}
