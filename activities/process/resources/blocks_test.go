package resources

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// machine numbers CPUs like Linux on a server: first one thread of each core, node by node, then
// the second threads.
func machine(nodes, cores, threads int) []CPU {
	var cpus []CPU
	for node := range nodes {
		for core := range cores {
			for thread := range threads {
				first := node*cores + core
				cpus = append(cpus, CPU{ID: thread*nodes*cores + first, Core: first, Node: node, Package: node})
			}
		}
	}
	return cpus
}

// without omits the CPUs that a container removes.
func without(cpus []CPU, ids ...int) []CPU {
	return slices.DeleteFunc(cpus, func(c CPU) bool { return slices.Contains(ids, c.ID) })
}

func TestBlocksOfCPUs(t *testing.T) {
	for name, c := range map[string]struct {
		cpus []CPU
		m    int
		want [][]int
	}{
		"one each":                        {machine(1, 2, 1), 2, [][]int{{0}, {1}}},
		"all for one":                     {machine(2, 2, 1), 1, [][]int{{0, 1, 2, 3}}},
		"threads of a core":               {machine(1, 2, 2), 2, [][]int{{0, 2}, {1, 3}}},
		"a node each":                     {machine(2, 2, 2), 2, [][]int{{0, 4, 1, 5}, {2, 6, 3, 7}}},
		"the longer one first":            {machine(1, 3, 1), 2, [][]int{{0, 1}, {2}}},
		"two to a node":                   {machine(2, 5, 1), 4, [][]int{{0, 1, 2}, {3, 4}, {5, 6, 7}, {8, 9}}},
		"unequal nodes, small one first":  {without(machine(2, 5, 1), 3, 4), 3, [][]int{{0, 1, 2}, {5, 6, 7}, {8, 9}}},
		"unequal nodes, large one first":  {without(machine(2, 5, 1), 8, 9), 3, [][]int{{0, 1, 2}, {3, 4, 5}, {6, 7}}},
		"half a core is a core":           {without(machine(1, 2, 2), 3), 2, [][]int{{0, 2}, {1}}},
		"more tasks than cores":           {machine(1, 2, 2), 3, [][]int{{0, 2}, {1}, {3}}},
		"more tasks than cores, 2 nodes":  {machine(2, 1, 2), 3, [][]int{{0, 2}, {1}, {3}}},
		"more tasks than CPUs take turns": {machine(1, 2, 1), 5, [][]int{{0}, {1}, {0}, {1}, {0}}},
	} {
		assert.Equal(t, c.want, cutCPUs(c.cpus, c.m), name)
	}
}

func TestListedCPUs(t *testing.T) {
	s, tasks := tasksOf(t, "worker=2")
	inv := Inventory{CPUs: machine(2, 4, 2)}
	for _, c := range []struct {
		cpus      spec.Resources
		zero, one []int
	}{
		{cpus: spec.Resources{"auto"}, zero: []int{0, 8, 1, 9, 2, 10, 3, 11}, one: []int{4, 12, 5, 13, 6, 14, 7, 15}},
		{cpus: spec.Resources{"7", "0-2", "8"}, zero: []int{0, 8, 1}, one: []int{2, 7}},
		{cpus: spec.Resources{}},
		{cpus: nil},
	} {
		s.CPUs = c.cpus
		shares, problems := inv.Split(s, "a", tasks, nil)
		require.Empty(t, problems)
		assert.Equal(t, c.zero, shares["worker-0"].CPUs)
		assert.Equal(t, c.one, shares["worker-1"].CPUs)
	}
}

func TestFormatList(t *testing.T) {
	assert.Equal(t, "0-3,5,7-8", formatList([]CPU{{ID: 8}, {ID: 5}, {ID: 0}, {ID: 1}, {ID: 2}, {ID: 3}, {ID: 7}}))
}

// FuzzSplit checks Split's invariants for any host and run.
func FuzzSplit(f *testing.F) {
	f.Add(uint8(2), uint8(4), uint8(2), uint8(3), uint8(4), uint64(0))
	f.Add(uint8(1), uint8(1), uint8(1), uint8(9), uint8(0), uint64(1))
	f.Add(uint8(4), uint8(7), uint8(2), uint8(11), uint8(13), uint64(0xf0f0))
	f.Add(uint8(3), uint8(5), uint8(4), uint8(40), uint8(50), uint64(0x8001))
	f.Fuzz(func(t *testing.T, nodes, cores, threads, m, devices uint8, gone uint64) {
		all := machine(1+int(nodes%4), 1+int(cores%9), 1+int(threads%4))
		cpus := slices.DeleteFunc(all, func(c CPU) bool { return c.ID < 64 && gone&(1<<c.ID) != 0 })
		n := 1 + int(m%64)
		if len(cpus) == 0 {
			return
		}
		var tasks []spec.Task
		for i := range n {
			tasks = append(tasks, spec.Task{Type: "worker", Index: i, Rank: i})
		}
		inv := Inventory{CPUs: cpus}
		for i := range int(devices) {
			inv.GPUs.Visible = append(inv.GPUs.Visible, strconv.Itoa(i))
		}
		inv.GPUs.Count = len(inv.GPUs.Visible)
		s := &spec.RunSpec{CPUs: spec.Resources{"auto"}, Devices: spec.Resources{"auto"}}
		shares, problems := inv.Split(s, "a", tasks, nil)
		if devices > 0 && int(devices) < n {
			require.Len(t, problems, 1)
			return
		}
		require.Empty(t, problems)

		core := map[int]CPU{}
		for _, c := range cpus {
			core[c.ID] = c
		}
		owners, seen := map[int]int{}, map[string]int{}
		var sizes []int
		for _, task := range tasks {
			share := shares[task.Name()]
			require.NotEmpty(t, share.CPUs)
			own := map[int]bool{}
			for _, id := range share.CPUs {
				owners[id]++
				require.Contains(t, core, id)
				own[core[id].Core] = true
			}
			sizes = append(sizes, len(own))
			for _, d := range share.Devices {
				seen[d]++
			}
		}
		require.Len(t, owners, min(len(cpus), max(n, len(cpus))), "all are used")
		if n <= len(cpus) {
			for id, times := range owners {
				require.Equal(t, 1, times, "CPU %d", id)
			}
		}
		if n <= len(coresOf(cpus)) {
			require.LessOrEqual(t, slices.Max(sizes)-slices.Min(sizes), 1, "cores of tasks")
			for _, id := range owners {
				require.Equal(t, 1, id)
			}
			// A core's threads stay together.
			owner := map[int]string{}
			for _, task := range tasks {
				for _, id := range shares[task.Name()].CPUs {
					if was, ok := owner[core[id].Core]; ok {
						require.Equal(t, was, task.Name())
					}
					owner[core[id].Core] = task.Name()
				}
			}
		}
		require.Len(t, seen, int(devices), "every device")
		for d, times := range seen {
			require.Equal(t, 1, times, "device %s", d)
		}
	})
}
