package workers

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// resolveTakes limits the look-up of this host's name. If it fails, an address is used instead.
	resolveTakes = time.Second
	// farAway is an address outside all networks (RFC 5737), so packets to it would take the
	// default route.
	farAway = "198.51.100.1:9"
	// loopback is for a machine without a network.
	loopback = "127.0.0.1"
)

// advertised returns this host's address for other hosts: the option, or else the host's name if
// other hosts can resolve it, or else the local address of connections to the server.
func (s *side) advertised(ctx context.Context) string {
	if s.Advertise != "" || spec.IsPrivateQueue(s.Queue) || !s.Role.servesTasks() {
		return s.Advertise
	}
	addresses, isPublic := resolve(ctx, s.Host)
	if isPublic && slices.ContainsFunc(addresses, isOwnOutside) {
		return s.Host
	}
	peers := []string{farAway} // the server may be on this machine
	if server, err := s.Server.HostPort(); err == nil {
		peers = []string{server, farAway}
	}
	for _, peer := range peers {
		if ip, err := hostservice.RouteTo(peer); err == nil && !ip.IsLoopback() {
			return ip.String()
		}
	}
	return loopback
}

// resolve returns a name's addresses, and reports whether they are from DNS. Other hosts may not
// know names from this host's hosts file.
func resolve(ctx context.Context, name string) (addresses []string, isPublic bool) {
	ctx, cancel := context.WithTimeout(ctx, resolveTakes)
	defer cancel()
	var asked atomic.Bool
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		asked.Store(true)
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	addresses, err := resolver.LookupHost(ctx, name)
	return addresses, err == nil && asked.Load()
}

// isOwnOutside reports whether an address belongs to this host and is not a loopback address.
func isOwnOutside(address string) bool {
	ip := net.ParseIP(address)
	return ip != nil && !ip.IsLoopback() && hostservice.IsOwn(ip)
}
