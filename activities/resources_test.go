package activities

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// The tasks of a run on one host share its resources, even if they came there separately.
func TestResourcesOfAHost_MPR33(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b,GPU-c")
	plans, err := openPlans(t.TempDir())
	require.NoError(t, err)
	h := assemble(&core{Config: Config{Name: "a"}, plans: plans})
	run := runkey.Run{WorkflowID: "w"}
	two, one := 2, 1
	s := &spec.RunSpec{
		Devices: spec.Resources{"auto"}, CPUs: spec.Resources{"auto"},
		Tasks: []spec.TaskGroup{{Type: "chief", Count: &one}, {Type: "worker", Count: &two}, {Type: "ps", Count: &one}},
	}
	all := s.TaskList()
	in := hostapi.ReserveInput{Spec: s}

	problems, err := h.checks.checkResources(run, in, all[:2])
	require.NoError(t, err)
	assert.Empty(t, problems)
	_, err = plans.update(run, func(*plan) (*plan, error) {
		return &plan{Run: run, Spec: s, Tasks: []string{"worker-1", "chief-0"}}, nil
	})
	require.NoError(t, err)
	problems, err = h.checks.checkResources(run, in, all[1:])
	require.NoError(t, err)
	require.Len(t, problems, 1)
	assert.Equal(t, "devices: 4 tasks on host a share 3 devices (auto), but each needs one; give some types devices: [], or have fewer tasks", problems[0].String())
	problems, err = h.checks.checkResources(runkey.Run{WorkflowID: "another"}, in, all[1:])
	require.NoError(t, err)
	assert.Empty(t, problems)

	s.Tasks[2].Devices = spec.Resources{}
	problems, err = h.checks.checkResources(run, in, all[1:])
	require.NoError(t, err)
	assert.Empty(t, problems)

	// The order of local ranks counts, not the order of the reservations.
	p, err := plans.get(run)
	require.NoError(t, err)
	p.Tasks = []string{"ps-0", "worker-1", "chief-0"}
	p.Cluster.Members = []hostapi.Member{
		{Type: "chief", Rank: 0, Host: "a"}, {Type: "worker", Index: 0, Rank: 1, Host: "b"},
		{Type: "worker", Index: 1, Rank: 2, Host: "a", LocalRank: 1}, {Type: "ps", Rank: 3, Host: "a", LocalRank: 2},
	}
	l := &taskLease{Host: h, plan: p}
	for name, want := range map[string]string{"chief-0": "GPU-a,GPU-c", "worker-1": "GPU-b", "ps-0": "", "worker-2": "GPU-a,GPU-c", "worker-3": "GPU-b"} {
		task, ok := p.task(name)
		if !ok { // a task that was added later
			typ, index, err := spec.ParseTaskName(name)
			require.NoError(t, err)
			task = spec.Task{Type: typ, Index: index}
		}
		var process taskenv.Process
		cpus, err := l.resources(task, &process)
		require.NoError(t, err)
		assert.Equal(t, want, process.Devices["CUDA_VISIBLE_DEVICES"], name)
		assert.NotEmpty(t, cpus)
		assert.Len(t, cpus, process.CPUs)
	}

	// The devices are gone when the task starts.
	t.Setenv("CUDA_VISIBLE_DEVICES", "GPU-a")
	_, err = l.resources(all[0], &taskenv.Process{})
	assert.ErrorContains(t, err, "2 tasks on host a share 1 device (auto)")

	// If no resources are requested, nothing is set.
	p.Spec = &spec.RunSpec{Tasks: s.Tasks[:2]}
	var process taskenv.Process
	cpus, err := l.resources(all[0], &process)
	require.NoError(t, err)
	assert.Empty(t, cpus)
	assert.Equal(t, taskenv.Process{}, process)
}
