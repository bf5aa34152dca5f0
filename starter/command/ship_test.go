package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
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

func TestWaitingForWhatIsShipped(t *testing.T) {
	w := starter.Waiting{Queue: "clusterrun", Fetching: &spec.Fetching{Host: "gpu-1", Bytes: 60 << 20, Size: 120 << 20}}
	assert.Equal(t, "host gpu-1, which fetches what the run ships: 60 MiB of 120 MiB", waitingLine(w, time.Now()))
	w.Fetching.Unpacking = true
	assert.Equal(t, "host gpu-1, which unpacks what the run ships: 60 MiB of 120 MiB", waitingLine(w, time.Now()))
}
