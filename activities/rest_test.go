package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// All hosts of a run together ask the server about it at most 50 times a second.
func TestHostsOfALargeRunAskTheServerRarely(t *testing.T) {
	tasks := []spec.TaskGroup{{Type: "worker", Count: new(8000)}}
	for hosts, want := range map[int]time.Duration{1: 0, 100: 0, 1000: 18 * time.Second} {
		assert.Equal(t, want, restOf(&plan{Spec: &spec.RunSpec{Tasks: tasks}, Cluster: hostapi.Cluster{Hosts: hosts}}), "%d hosts", hosts)
	}
	reserved := &plan{Spec: &spec.RunSpec{Tasks: tasks}, Tasks: []string{"worker-0", "worker-1", "worker-2", "worker-3", "worker-4", "worker-5", "worker-6", "worker-7"}}
	assert.Equal(t, 18*time.Second, restOf(reserved), "before the host knows the others")
	assert.Zero(t, restOf(&plan{Spec: &spec.RunSpec{Tasks: tasks}}), "a host that the run has left")
}
