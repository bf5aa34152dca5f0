// Package ports leases a machine's ports to runs.
package ports

import (
	"errors"
	"iter"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// bindPort binds the socket name that stands for a port. The kernel frees the name when its holder
// exits.
func bindPort(port int) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + portPrefix + strconv.Itoa(port)}); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// isFree returns an error unless a program could listen on a port, on any address of either family.
func isFree(port int) error { return probePort(port, false) }

// isReusable is like isFree, but ignores connections of an earlier listener that are in TIME_WAIT,
// as nearly all programs do.
func isReusable(port int) error { return probePort(port, true) }

func probePort(port int, reuse bool) error {
	probe := func(family int, addr unix.Sockaddr) error {
		fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if errors.Is(err, unix.EAFNOSUPPORT) {
			return nil
		}
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if reuse {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		}
		if family == unix.AF_INET6 {
			_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1)
		}
		err = unix.Bind(fd, addr)
		if errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EACCES) {
			return nil // the family does not exist, or only the task may use the port
		}
		return err
	}
	if err := probe(unix.AF_INET, &unix.SockaddrInet4{Port: port}); err != nil {
		return err
	}
	return probe(unix.AF_INET6, &unix.SockaddrInet6{Port: port})
}

const (
	lowestPort = 20000
	// fewestPorts is the minimum size of the range.
	fewestPorts = 1024
)

// Range returns the ports to choose from, excluding high.
func Range() (low, high int) {
	raw, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return lowestPort, 32768
	}
	return choosePorts(string(raw))
}

func choosePorts(local string) (low, high int) {
	first, last := 32768, 60999
	if fields := strings.Fields(local); len(fields) == 2 {
		if a, err := strconv.Atoi(fields[0]); err == nil {
			first = a
		}
		if b, err := strconv.Atoi(fields[1]); err == nil {
			last = b
		}
	}
	switch {
	case first-lowestPort >= fewestPorts:
		return lowestPort, first
	case 65536-(last+1) >= fewestPorts:
		return last + 1, 65536
	default:
		return lowestPort, 32768 // all ports are ephemeral, so rely on the probe alone
	}
}

// anyPorts returns the ports to choose from, except those that the administrator has reserved,
// starting at a random one.
func anyPorts() iter.Seq[int] {
	return func(yield func(int) bool) {
		low, high := Range()
		reserved := reservedPorts()
		start := rand.IntN(high - low) //nolint:gosec // not a secret: it spreads concurrent searches
		for i := range high - low {
			if port := low + (start+i)%(high-low); !reserved(port) && !yield(port) {
				return
			}
		}
	}
}

// Free returns unleased ports below the range that the kernel uses for outgoing connections. Each
// port is withheld from runs until the next one is requested.
func Free() iter.Seq[int] {
	return func(yield func(int) bool) {
		for port := range anyPorts() {
			fd, err := bindPort(port)
			if err != nil {
				continue
			}
			more := yield(port)
			_ = unix.Close(fd)
			if !more {
				return
			}
		}
	}
}

// reservedPorts returns a function that reports whether the administrator has reserved a port.
func reservedPorts() func(int) bool {
	raw, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_reserved_ports")
	if err != nil {
		return func(int) bool { return false }
	}
	type span struct{ from, to int }
	var spans []span
	for part := range strings.SplitSeq(strings.TrimSpace(string(raw)), ",") {
		a, b, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(a)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(b); err != nil {
				continue
			}
		}
		spans = append(spans, span{from, to})
	}
	return func(port int) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return s.from <= port && port <= s.to })
	}
}
