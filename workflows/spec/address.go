package spec

import (
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// hostRegexp matches the name of a host worker. The name becomes part of a task queue's name,
// where "/" is a separator.
var hostRegexp = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)

// SplitAddress splits "host:port" or "host". The port is 0 if addr does not contain one. An IPv6
// address is written in brackets, as in "[::1]:2222", but returned without them.
//
// The host names a host worker: a task with the address "host-a:2222" runs on the host whose worker
// is named "host-a". A name that [IsLoopback] accepts, such as "localhost", means the host that
// starts the run, as in a cluster spec written for one machine. Do not give such a name to a
// worker.
func SplitAddress(addr string) (host string, port int, err error) {
	host, rest, err := splitHost(addr)
	if err != nil {
		return "", 0, err
	}
	if rest == "" {
		return host, 0, nil
	}
	port, err = strconv.Atoi(rest[1:])
	if err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != rest[1:] {
		return "", 0, valueError{Quote(addr) + " has an invalid port", "ports range from 1 to 65535"}
	}
	return host, port, nil
}

// splitHost splits the host from an address. The rest is either empty or a colon followed by a
// port, which may be invalid.
func splitHost(addr string) (host, rest string, err error) {
	if inner, ok := strings.CutPrefix(addr, "["); ok {
		host, rest, ok = strings.Cut(inner, "]")
		ip, ipErr := netip.ParseAddr(host)
		if !ok || ipErr != nil || !ip.Is6() || !hostSafe(host) || rest != "" && rest[0] != ':' {
			return "", "", valueError{Quote(addr) + " is not an address", `write IPv6 like "[::1]:2222"`}
		}
		return host, rest, nil
	}
	if strings.Count(addr, ":") > 1 {
		return "", "", valueError{Quote(addr) + " is not an address", `write "host:port", with IPv6 in brackets: "[::1]:2222"`}
	}
	host, port, hasPort := strings.Cut(addr, ":")
	if !hostRegexp().MatchString(host) {
		return "", "", valueError{Quote(addr) + " is not an address", `write "host:port" or "host"; a host name consists of letters, digits, ".", "-" and "_"`}
	}
	if hasPort {
		rest = ":" + port
	}
	return host, rest, nil
}

// hostSafe reports whether an IPv6 address is free of characters that are valid in its zone but not
// in a queue's name.
func hostSafe(ip string) bool { return !strings.ContainsAny(ip, "/ ") && printable(ip) == ip }

// IsLoopback reports whether a host means the machine itself: localhost, an IPv4 address in
// 127.0.0.0/8, or ::1.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && ip.Unmap().IsLoopback()
}

// endpoint normalizes an address for comparison. Host names are case-insensitive, and all names for
// the machine itself are equal.
func endpoint(host string, port int) string {
	if IsLoopback(host) {
		host = "localhost"
	}
	return strings.ToLower(host) + ":" + strconv.Itoa(port)
}

// HostPart returns an address's host.
func HostPart(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
