package workers

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Without an option, the advertised address is the host's name if other hosts can find it by
// that, and otherwise an address of this host that they can reach.
func TestAdvertised(t *testing.T) {
	outside := loopback
	if ip, err := hostservice.RouteTo(farAway); err == nil {
		outside = ip.String()
	}
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"as the options say":           {Options{Advertise: "gpu-1.example", Host: "a", Queue: spec.TaskQueue}, "gpu-1.example"},
		"a name that nobody knows":     {Options{Host: "a.invalid", Queue: spec.TaskQueue}, outside},
		"a name that only we know":     {Options{Host: "localhost", Queue: spec.TaskQueue}, outside},
		"a server on this machine":     {Options{Host: "a.invalid", Queue: spec.TaskQueue, Server: connect.Options{Address: "127.0.0.1:7233"}}, outside},
		"a run with hosts of its own":  {Options{Host: "a", Queue: spec.PrivateQueue("iris")}, ""},
		"no tasks are executed here":   {Options{Host: "a", Queue: spec.TaskQueue, Role: RoleController}, ""},
		"a server that nobody answers": {Options{Host: "a.invalid", Queue: spec.TaskQueue, Server: connect.Options{Address: "no-such-name.invalid:7233"}}, outside},
	} {
		t.Run(name, func(t *testing.T) {
			s := &side{Options: c.options}
			assert.Equal(t, c.want, s.advertised(t.Context()))
		})
	}
	l, err := net.Listen("tcp", net.JoinHostPort(outside, "0"))
	require.NoError(t, err, "it is an address of this machine")
	require.NoError(t, l.Close())
}
