package taskenv

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

const cuda, hip = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"

// The devices assigned to a task override what the host worker has, and the spec of the task
// overrides them (MPR-33).
func TestVisibleDevices_MPR33(t *testing.T) {
	base := []string{cuda + "=0,1,2,3"}
	p := process("worker-1")
	assert.Equal(t, "0,1,2,3", environ(t, base, p)[cuda], "not shared out")

	p.Devices = map[string]string{cuda: "1,3"}
	assert.Equal(t, "1,3", environ(t, base, p)[cuda])
	p.Devices = map[string]string{cuda: ""}
	value, set := environ(t, base, p)[cuda]
	assert.True(t, set)
	assert.Empty(t, value, "it sees none")

	p.Devices = map[string]string{cuda: "1", hip: "1"}
	p.Env = map[string]string{cuda: "7"}
	got := environ(t, base, p)
	assert.Equal(t, "7", got[cuda])
	assert.NotContains(t, got, hip, "it would come first for AMD's runtime")
}

func TestThreadsOfBoundProcesses(t *testing.T) {
	const threads = "OMP_NUM_THREADS"
	p := process("worker-1")
	assert.Equal(t, "1", environ(t, nil, p)[threads])
	p.CPUs = 8
	assert.Equal(t, "8", environ(t, nil, p)[threads])
	assert.Equal(t, "3", environ(t, []string{threads + "=3"}, p)[threads])
	p.Cluster.Profiles = []spec.EnvProfile{spec.EnvJAX}
	assert.Equal(t, "8", environ(t, nil, p)[threads])
	p.Env = map[string]string{threads: "2"}
	assert.Equal(t, "2", environ(t, []string{threads + "=3"}, p)[threads])
}
