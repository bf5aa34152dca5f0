package proc

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
)

// PeerUser returns the ID of the user whose program on this machine opened the connection from the
// address remote to local, or "" if the user is unknown.
func PeerUser(remote string, local net.Addr) string {
	if local == nil {
		return ""
	}
	from, to := endpoint(remote), endpoint(local.String())
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		connections, _ := os.ReadFile(table)
		for line := range strings.Lines(string(connections)) {
			f := strings.Fields(line)
			if len(f) > 7 && strings.HasSuffix(f[1], from) && strings.HasSuffix(f[2], to) {
				return f[7]
			}
		}
	}
	return ""
}

// endpoint returns an IPv4 address and port as in the kernel's tables.
func endpoint(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil || !a.Addr().Unmap().Is4() {
		return "unknown"
	}
	ip := a.Addr().Unmap().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(ip[:]), a.Port())
}
