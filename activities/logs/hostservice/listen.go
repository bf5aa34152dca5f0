package hostservice

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/clusterrun/clusterrun/activities/process/supervisor/ports"
	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
)

// portFile is the file in the state directory with the last port. Runs know the port, and must be
// able to find a restarted host worker there. So the port is one that the kernel does not use for
// outgoing connections.
const portFile = "hostservice.port"

// listen listens on the address. If the port is missing or 0, it uses the previous port or, if that
// is in use, any free port.
func listen(stateDir, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host, port = strings.Trim(address, "[]"), "0"
	}
	if port != "0" && port != "" {
		return listenAt(net.JoinHostPort(host, port))
	}
	path := filepath.Join(stateDir, portFile)
	if last, err := os.ReadFile(path); err == nil {
		if l, err := listenAt(net.JoinHostPort(host, strings.TrimSpace(string(last)))); err == nil {
			return l, nil
		}
	}
	l, err := listenAnywhere(host)
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Write(path, []byte(portOf(l.Addr())+"\n"), 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("store the port of the host service: %w", err)
	}
	return l, nil
}

func listenAnywhere(host string) (net.Listener, error) {
	for port := range ports.Free() {
		l, err := listenAt(net.JoinHostPort(host, strconv.Itoa(port)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
	}
	return listenAt(net.JoinHostPort(host, "0"))
}

func listenAt(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, portTaken{address, err}
	case err != nil:
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	return l, nil
}

func portOf(a net.Addr) string { return strconv.Itoa(a.(*net.TCPAddr).Port) }

// portTaken is the error if another program is listening on the port.
type portTaken struct {
	address string
	error
}

func (e portTaken) Error() string {
	return fmt.Sprintf("--listen %s: another program already listens there; use another port, or none for a free one", e.address)
}

func (e portTaken) Unwrap() error { return e.error }

// advertised returns the address that clients use. This is the requested address or, if there is
// none, the one on which the service listens. If it listens on all addresses, it is the local
// address of connections to the peer.
func advertised(l net.Listener, wished, peer string) (string, error) {
	port := portOf(l.Addr())
	if wished != "" {
		if _, _, err := net.SplitHostPort(wished); err == nil {
			return wished, nil
		}
		return net.JoinHostPort(strings.Trim(wished, "[]"), port), nil
	}
	if ip := l.Addr().(*net.TCPAddr).IP; !ip.IsUnspecified() {
		return net.JoinHostPort(ip.String(), port), nil
	}
	ip, err := RouteTo(peer)
	if err != nil {
		return "", fmt.Errorf("find this host's address (or specify one with --advertise): %w", err)
	}
	return net.JoinHostPort(ip.String(), port), nil
}

// IsOwn reports whether an address belongs to this host.
func IsOwn(ip net.IP) bool {
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}

// RouteTo returns the local address of connections to a peer, given as HOST:PORT.
func RouteTo(peer string) (net.IP, error) {
	// This does not send anything, because dialing UDP only consults the routing table.
	c, err := net.Dial("udp", peer)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).IP, nil
}
