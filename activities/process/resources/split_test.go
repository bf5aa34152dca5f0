package resources

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// gpus is a host with n NVIDIA GPUs.
func gpus(n int) GPUs {
	g := GPUs{Vendor: VendorNVIDIA, Count: n}
	for i := range n {
		g.Visible = append(g.Visible, string(rune('0'+i)))
	}
	return g
}

// tasksOf reads "chief=1 worker=2", in rank order.
func tasksOf(t *testing.T, text string) (*spec.RunSpec, []spec.Task) {
	t.Helper()
	s := &spec.RunSpec{}
	var tasks []spec.Task
	for _, f := range strings.Fields(text) {
		typ, n, _ := strings.Cut(f, "=")
		count := int(n[0] - '0')
		s.Tasks = append(s.Tasks, spec.TaskGroup{Type: typ, Count: &count})
		for i := range count {
			tasks = append(tasks, spec.Task{Type: typ, Index: i, Rank: len(tasks)})
		}
	}
	return s, tasks
}

// visible returns each task's CUDA_VISIBLE_DEVICES, "all" where it is not set.
func visible(t *testing.T, g GPUs, s *spec.RunSpec, tasks []spec.Task) []string {
	t.Helper()
	shares, problems := Inventory{GPUs: g}.Split(s, "a", tasks, nil)
	require.Empty(t, problems)
	var out []string
	for _, task := range tasks {
		if d := shares[task.Name()].Devices; d != nil {
			out = append(out, g.Variables(d)[cudaVisible])
		} else {
			out = append(out, "all")
		}
	}
	return out
}

func TestDevicesGoRound_MPR33(t *testing.T) {
	for _, c := range []struct {
		tasks   string
		gpus    GPUs
		devices spec.Resources
		want    []string
	}{
		{"chief=1 worker=1", gpus(2), spec.Resources{"auto"}, []string{"0", "1"}},
		{"chief=1 worker=1", gpus(4), spec.Resources{"auto"}, []string{"0,2", "1,3"}},
		{"chief=1 worker=1", gpus(8), spec.Resources{"0-3"}, []string{"0,2", "1,3"}},
		{"worker=2", gpus(3), spec.Resources{"auto"}, []string{"0,2", "1"}},
		{"worker=1", gpus(3), spec.Resources{"2", "0"}, []string{"2,0"}},
		{"worker=2", gpus(2), nil, []string{"all", "all"}},
		{"worker=2", gpus(2), spec.Resources{}, []string{"", ""}},
		{"worker=2", gpus(0), spec.Resources{"auto"}, []string{"all", "all"}},
		{"worker=2", gpus(0), spec.Resources{}, []string{"", ""}},
		// No GPU is seen, so the host worker's list counts.
		{"worker=2", GPUs{Visible: []string{"0", "1", "2", "3"}, LimitedBy: cudaVisible}, spec.Resources{"0-3"}, []string{"0,2", "1,3"}},
		{"worker=2", gpus(0), spec.Resources{"GPU-a", "MIG-b"}, []string{"GPU-a", "MIG-b"}},
		{"worker=2", gpus(1), spec.Resources{"GPU-a", "MIG-b"}, []string{"GPU-a", "MIG-b"}},
		{"worker=2", GPUs{Count: 8, Visible: []string{"5", "3"}, LimitedBy: cudaVisible}, spec.Resources{"auto"}, []string{"5", "3"}},
		{"worker=1", GPUs{Count: 8, Visible: []string{"5", "3"}, LimitedBy: cudaVisible}, spec.Resources{"3"}, []string{"3"}},
		{"worker=1", GPUs{Count: 8, Visible: []string{}, LimitedBy: cudaVisible}, spec.Resources{"auto"}, []string{"all"}},
	} {
		s, tasks := tasksOf(t, c.tasks)
		s.Devices = c.devices
		assert.Equal(t, c.want, visible(t, c.gpus, s, tasks), "%v", c)
	}
}

// The types without their own list form one pool, in local rank order. Each type with a list is a
// separate pool.
func TestPools(t *testing.T) {
	s, tasks := tasksOf(t, "chief=1 worker=2 ps=2 evaluator=1")
	s.Devices = spec.Resources{"0-2"}
	s.Tasks[2].Devices = spec.Resources{}
	s.Tasks[3].Devices = spec.Resources{"3"}
	assert.Equal(t, []string{"0", "1", "2", "", "", "3"}, visible(t, gpus(4), s, tasks))
	s.Devices = nil
	assert.Equal(t, []string{"all", "all", "all", "", "", "3"}, visible(t, gpus(4), s, tasks))
}

func TestWhatCannotBeShared(t *testing.T) {
	limited := GPUs{Count: 8, Visible: []string{"5", "3"}, LimitedBy: cudaVisible}
	for _, c := range []struct {
		tasks   string
		gpus    GPUs
		devices spec.Resources
		want    string
	}{
		{"worker=8", gpus(4), spec.Resources{"auto"}, "devices: 8 tasks on host a share 4 devices (auto), but each needs one; set devices: [] for some types, or use fewer tasks"},
		{"worker=2", gpus(4), spec.Resources{"3"}, "devices: 2 tasks on host a share 1 device (3), but each needs one; set devices: [] for some types, or use fewer tasks"},
		{"worker=1", gpus(0), spec.Resources{"0", "99"}, "devices: host a has no GPUs, so device 0 does not exist; omit it, or set CUDA_VISIBLE_DEVICES for clusterrun if the host has GPUs"},
		{"worker=3", gpus(2), spec.Resources{"0-1"}, "devices: 3 tasks on host a share 2 devices (0-1), but each needs one; set devices: [] for some types, or use fewer tasks"},
		{"worker=1", gpus(4), spec.Resources{"0", "7"}, "devices: device 7 does not exist on host a, which has 4 devices, numbered from 0; list existing ones, or write auto for all"},
		{"worker=1", limited, spec.Resources{"0"}, "devices: device 0 cannot be used on host a: the host worker's CUDA_VISIBLE_DEVICES lists 5,3; list some of them, or write auto for all"},
		{"worker=1", GPUs{LimitedBy: cudaVisible}, spec.Resources{"0"}, "devices: device 0 cannot be used on host a: the host worker was started with a CUDA_VISIBLE_DEVICES that hides all devices; start it without that variable, or list these devices in it"},
	} {
		s, tasks := tasksOf(t, c.tasks)
		s.Devices = c.devices
		shares, problems := Inventory{GPUs: c.gpus}.Split(s, "a", tasks, nil)
		assert.Nil(t, shares)
		require.Len(t, problems, 1, c.want)
		assert.Equal(t, c.want, problems[0].String())
	}
}

func TestEveryProblemAtOnce(t *testing.T) {
	s, tasks := tasksOf(t, "chief=1 worker=2")
	s.Devices, s.CPUs = spec.Resources{"9"}, spec.Resources{"0-1", "9"}
	s.Tasks[1].Devices = spec.Resources{"0"}
	_, problems := Inventory{GPUs: gpus(1), CPUs: machine(1, 4, 1)}.Split(s, "a", tasks, nil)
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.Path+": "+p.Message)
	}
	assert.Equal(t, []string{
		"devices: device 9 does not exist on host a, which has 1 device, numbered from 0",
		"tasks[1].devices: 2 tasks on host a share 1 device (0), but each needs one",
		"cpus: CPU 9 cannot be used on host a: the host worker may run on 0-3",
	}, texts)
}

// A task added later gets an earlier task's share, and the earlier tasks keep theirs.
func TestAddedTasks(t *testing.T) {
	s, tasks := tasksOf(t, "worker=2")
	s.Devices, s.CPUs = spec.Resources{"auto"}, spec.Resources{"auto"}
	inv := Inventory{GPUs: gpus(4), CPUs: machine(1, 4, 1)}
	before, problems := inv.Split(s, "a", tasks, nil)
	require.Empty(t, problems)
	added := []spec.Task{{Type: "worker", Index: 2, Rank: 2}, {Type: "worker", Index: 3, Rank: 3}, {Type: "evaluator", Rank: 4}}
	after, problems := inv.Split(s, "a", tasks, added)
	require.Empty(t, problems)
	for _, task := range tasks {
		assert.Equal(t, before[task.Name()], after[task.Name()])
	}
	assert.Equal(t, before["worker-0"], after["worker-2"])
	assert.Equal(t, before["worker-1"], after["worker-3"])
	assert.Equal(t, before["worker-0"], after["evaluator-0"])

	// No other task uses the run's list.
	s.Tasks[0].Devices, s.Tasks[0].CPUs = spec.Resources{}, spec.Resources{}
	after, problems = inv.Split(s, "a", tasks, added[2:])
	require.Empty(t, problems)
	assert.Equal(t, Share{Devices: []string{"0", "1", "2", "3"}, CPUs: []int{0, 1, 2, 3}}, after["evaluator-0"])
	assert.Equal(t, Share{Devices: []string{}}, after["worker-0"])
}

func TestVariables(t *testing.T) {
	amd := GPUs{Vendor: VendorAMD, Count: 4}
	assert.Equal(t, map[string]string{cudaVisible: "1,3"}, gpus(4).Variables([]string{"1", "3"}))
	assert.Equal(t, map[string]string{cudaVisible: ""}, gpus(4).Variables(nil))
	assert.Equal(t, map[string]string{cudaVisible: "1", hipVisible: "1"}, amd.Variables([]string{"1"}))
	assert.Equal(t, map[string]string{cudaVisible: "-1", hipVisible: "-1"}, amd.Variables(nil))
}

func TestWanted(t *testing.T) {
	s, _ := tasksOf(t, "worker=2 ps=1")
	assert.False(t, Wanted(s))
	s.Tasks[1].Devices = spec.Resources{}
	assert.True(t, Wanted(s))
}

func TestGPUsOfTheirOwn(t *testing.T) {
	s, tasks := tasksOf(t, "chief=1 worker=2 ps=1")
	s.GPUsPerTask, s.Tasks[2].Devices = new(2), spec.Resources{}
	assert.Equal(t, []string{"0,1", "2,3", "4,5", ""}, visible(t, gpus(6), s, tasks))
	s.Tasks[0].GPUsPerTask = new(1)
	assert.Equal(t, []string{"0", "1,2", "3,4", ""}, visible(t, gpus(6), s, tasks))
	s.Tasks[2].Devices = spec.Resources{"1"}
	assert.Equal(t, []string{"0", "2,3", "4,5", "1"}, visible(t, gpus(6), s, tasks), "those that a list names are left alone")

	_, problems := Inventory{GPUs: gpus(5)}.Split(s, "a", tasks, nil)
	require.Len(t, problems, 1)
	assert.Equal(t, "gpus_per_task: 4 tasks on host a need 5 GPUs, but it has 4 for them; use fewer tasks, or fewer GPUs for each", problems[0].String())

	added := spec.Task{Type: "worker", Index: 5}
	shares, problems := Inventory{GPUs: gpus(6)}.Split(s, "a", tasks, []spec.Task{added})
	require.Empty(t, problems)
	assert.Equal(t, shares["worker-1"].Devices, shares[added.Name()].Devices, "one that comes later shares with another of its type")
}
