package specs

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/fleet"
)

func TestTakers(t *testing.T) {
	var hosts []fleet.HostStatus
	for name, state := range map[string]fleet.HostState{"a": fleet.HostDraining, "b": fleet.HostReady, "c": fleet.HostReady, "d": fleet.HostReady} {
		hosts = append(hosts, fleet.HostStatus{Host: fleet.Host{Name: name}, State: state})
	}
	var names []string
	for _, h := range takers(hosts, []string{"d", "c"}) {
		names = append(names, h.Name)
	}
	assert.Equal(t, []string{"d", "c", "b", "a"}, names)
}
