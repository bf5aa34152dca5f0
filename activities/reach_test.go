package activities

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// The host of rank 0 counts as reached whether it accepts the connection or refuses it.
func TestReachMaster(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	cluster := func(host, address string, profiles ...spec.EnvProfile) *hostapi.Cluster {
		return &hostapi.Cluster{Members: hostapi.Members{{Host: host}}, MasterAddr: address, MasterPort: port, Profiles: profiles}
	}
	h := assemble(&core{Config: Config{Name: "b"}})
	reach := func(c *hostapi.Cluster) error { return h.reachMaster(t.Context(), c) }
	require.NoError(t, reach(cluster("a", "127.0.0.1", spec.EnvTorch)))
	require.NoError(t, l.Close())
	require.NoError(t, reach(cluster("a", "127.0.0.1", spec.EnvTorch)))

	err = reach(cluster("a", "nobody.invalid", spec.EnvTensorFlow, spec.EnvTorch))
	require.ErrorContains(t, err, "host b cannot reach a, which has rank 0, by its address nobody.invalid (MASTER_ADDR): ")
	assert.ErrorContains(t, err, "--advertise")
	require.NoError(t, reach(cluster("a", "nobody.invalid", spec.EnvTensorFlow)), "nobody is told of it")
	require.NoError(t, reach(cluster("b", "nobody.invalid", spec.EnvTorch)), "it is this host")
}
