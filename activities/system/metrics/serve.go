package metrics

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
)

const (
	// maxConnections limits the open connections; further clients must wait.
	maxConnections = 32
	// patience limits how long a client may take to send a request, and to read the answer.
	patience = 10 * time.Second
)

// Address returns the address given to a flag, which is HOST:PORT, :PORT for all addresses of the
// machine, or PORT for this machine only.
func Address(flag, given string) (string, error) {
	host, port, err := net.SplitHostPort(given)
	if err != nil {
		host, port = "127.0.0.1", given
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", fmt.Errorf("--%s %q: use HOST:PORT, :PORT for all addresses of this machine, or PORT for loopback only, such as 9464", flag, given)
	}
	return net.JoinHostPort(host, port), nil
}

// Listen listens on an address returned by [Address]. Errors name the flag.
func Listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("--%s %s: another program already listens there; use another port", flag, address)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flag, address, err)
	}
	return netutil.LimitListener(l, maxConnections), nil
}

// Serve answers GET /metrics and GET /ready on l until l is closed.
func (m *Metrics) Serve(l net.Listener) {
	s := &http.Server{Handler: m.handler(), ReadHeaderTimeout: patience, ReadTimeout: patience, WriteTimeout: patience, IdleTimeout: patience, MaxHeaderBytes: 1 << 14}
	_ = s.Serve(l)
}

func (m *Metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if !m.Ready.Load() {
			http.Error(w, "not ready: this host worker's queues are not being served", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n")
	})
	return mux
}
