package remotehosts

import (
	"net"
	"os"
	"runtime"
	"strings"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// factsOf returns this host's facts. isOwn reports whether an address belongs to it. environ is
// the environment from the agent.
func factsOf(environ []string, isOwn func(string) bool) Facts {
	g := resources.ReadGPUs(environ)
	f := Facts{CPUs: runtime.NumCPU(), GPUs: len(g.Visible), GPUsLimitedBy: g.LimitedBy}
	f.Hostname, _ = os.Hostname() // the address is known without it
	f.Address = f.Hostname
	for _, variable := range environ {
		// "client address, client port, server address, server port"
		value, ok := strings.CutPrefix(variable, "SSH_CONNECTION=")
		fields := strings.Fields(value)
		// Another agent may pass on this variable from a session on another machine.
		if !ok || len(fields) != 4 || !isOwn(fields[2]) {
			continue
		}
		if f.Peer = fields[0]; !spec.IsLoopback(fields[2]) {
			f.Address = fields[2]
		}
	}
	return f
}

// IsOwnAddress reports whether text is an IP address of this machine.
func IsOwnAddress(text string) bool {
	ip := net.ParseIP(text)
	return ip != nil && (ip.IsLoopback() || hostservice.IsOwn(ip))
}
