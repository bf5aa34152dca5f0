package remotehosts

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
)

// ServeHTTP connects clients on this machine to the host services; see [hostservice.HostHeader].
func (s *Hosts) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.Header.Get(hostservice.HostHeader)
	at := slices.IndexFunc(s.all, func(h *host) bool { return h.name == name })
	_, port, err := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect || at < 0 || err != nil {
		http.Error(w, fmt.Sprintf("the command has no host %q", name), http.StatusNotFound)
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	theirs, ours := io.Pipe()
	response, err := s.all[at].post(ctx, "/dial?"+url.Values{"port": {port}}.Encode(), theirs)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	there := exchange{response.Body, ours}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_, _ = conn.Close(), there.Close()
		return
	}
	join(there, conn.(stream))
}
