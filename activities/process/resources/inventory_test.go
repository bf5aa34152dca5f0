package resources

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// tree writes files to a directory that stands for /.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range files {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

func nvidia(bus string, minor int) (path, text string) {
	return "proc/driver/nvidia/gpus/" + bus + "/information",
		"Model: \t\t NVIDIA H100\nIRQ:   \t\t 16\nGPU UUID: \t GPU-6a7b\nBus Location: \t " + bus + "\nDevice Minor: \t " + strconv.Itoa(minor) + "\nGPU Excluded:\t No\n"
}

func TestGPUsThatAreThere(t *testing.T) {
	listed := func(minors ...int) map[string]string {
		files := map[string]string{}
		for _, m := range minors {
			path, text := nvidia("0000:0"+strconv.Itoa(m)+":00.0", m)
			files[path] = text
		}
		return files
	}
	with := func(files map[string]string, more ...string) map[string]string {
		for _, m := range more {
			files[m] = ""
		}
		return files
	}
	kfd := func(files map[string]string, node, simd, minor int) {
		files["sys/class/kfd/kfd/topology/nodes/"+strconv.Itoa(node)+"/gpu_id"] = strconv.Itoa(1000*node) + "\n"
		files["sys/class/kfd/kfd/topology/nodes/"+strconv.Itoa(node)+"/properties"] =
			"cpu_cores_count 0\nsimd_count " + strconv.Itoa(simd) + "\ndrm_render_minor " + strconv.Itoa(minor) + "\n"
	}
	amd := with(map[string]string{}, "dev/kfd", "dev/dri/card0", "dev/dri/renderD128", "dev/dri/renderD130")
	kfd(amd, 0, 0, 0) // the CPUs
	kfd(amd, 1, 304, 128)
	kfd(amd, 2, 304, 129) // not in this container
	kfd(amd, 3, 304, 130)

	for name, c := range map[string]struct {
		files map[string]string
		env   []string
		want  GPUs
	}{
		"none":                         {nil, nil, GPUs{}},
		"two":                          {with(listed(0, 1), "dev/nvidia0", "dev/nvidia1", "dev/nvidiactl", "dev/nvidia-uvm"), nil, GPUs{VendorNVIDIA, 2, []string{"0", "1"}, ""}},
		"a hole":                       {with(listed(0, 3), "dev/nvidia0", "dev/nvidia3"), nil, GPUs{VendorNVIDIA, 2, []string{"0", "1"}, ""}},
		"a container with one of four": {with(listed(0, 1, 2, 3), "dev/nvidia2"), nil, GPUs{VendorNVIDIA, 1, []string{"0"}, ""}},
		"a container without":          {listed(0, 1), nil, GPUs{}},
		"a GPU that fell off the bus":  {with(listed(0), "dev/nvidia0", "dev/nvidia1"), nil, GPUs{VendorNVIDIA, 1, []string{"0"}, ""}},
		"no list":                      {with(map[string]string{}, "dev/nvidia0", "dev/nvidia1", "dev/nvidia-modeset"), nil, GPUs{VendorNVIDIA, 2, []string{"0", "1"}, ""}},

		"the worker's share": {with(listed(0, 1, 2), "dev/nvidia0", "dev/nvidia1", "dev/nvidia2"), []string{"CUDA_VISIBLE_DEVICES=9", "CUDA_VISIBLE_DEVICES=2,0"},
			GPUs{VendorNVIDIA, 3, []string{"2", "0"}, cudaVisible}},
		"the worker's share by name": {with(listed(0), "dev/nvidia0"), []string{"CUDA_VISIBLE_DEVICES=GPU-6a7b, MIG-x"}, GPUs{VendorNVIDIA, 1, []string{"GPU-6a7b", "MIG-x"}, cudaVisible}},
		"the worker has none":        {with(listed(0), "dev/nvidia0"), []string{"CUDA_VISIBLE_DEVICES="}, GPUs{VendorNVIDIA, 1, []string{}, cudaVisible}},
		"nor here":                   {with(listed(0), "dev/nvidia0"), []string{"CUDA_VISIBLE_DEVICES=-1"}, GPUs{VendorNVIDIA, 1, []string{}, cudaVisible}},
		"as CUDA reads it":           {with(listed(0, 1), "dev/nvidia0", "dev/nvidia1"), []string{"CUDA_VISIBLE_DEVICES=1,1,2,0"}, GPUs{VendorNVIDIA, 2, []string{"1"}, cudaVisible}},
		"an unknown kind":            {nil, []string{"CUDA_VISIBLE_DEVICES=0,5", "HIP_VISIBLE_DEVICES=1"}, GPUs{VendorNone, 0, []string{"0", "5"}, cudaVisible}},

		"AMD":                       {amd, nil, GPUs{VendorAMD, 2, []string{"0", "1"}, ""}},
		"AMD, HIP's own variable":   {amd, []string{"CUDA_VISIBLE_DEVICES=0", "HIP_VISIBLE_DEVICES=1"}, GPUs{VendorAMD, 2, []string{"1"}, hipVisible}},
		"AMD, empty is not set":     {amd, []string{"CUDA_VISIBLE_DEVICES=1", "HIP_VISIBLE_DEVICES="}, GPUs{VendorAMD, 2, []string{"1"}, cudaVisible}},
		"AMD, numbers after ROCr's": {amd, []string{"ROCR_VISIBLE_DEVICES=1"}, GPUs{VendorAMD, 1, []string{"0"}, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, readGPUs(tree(t, c.files), c.env))
		})
	}
}

func TestTopology(t *testing.T) {
	// Two nodes with two cores of two threads each. The kernel numbers the nodes alternately, as on
	// some machines.
	files := map[string]string{
		"sys/devices/system/node/node0/cpulist": "0,2,4,6\n",
		"sys/devices/system/node/node1/cpulist": "1,3,5,7\n",
		"sys/devices/system/node/node2/cpulist": "\n", // memory only
	}
	for id := range 8 {
		dir := "sys/devices/system/cpu/cpu" + strconv.Itoa(id) + "/topology/"
		files[dir+"physical_package_id"] = strconv.Itoa(id%2) + "\n"
		first := id % 4
		files[dir+"thread_siblings_list"] = strconv.Itoa(first) + "," + strconv.Itoa(first+4) + "\n"
	}
	root := tree(t, files)
	order := func(cpus []CPU) (ids []int) {
		for _, c := range cpus {
			ids = append(ids, c.ID)
		}
		return ids
	}
	all := readCPUs(root, []int{0, 1, 2, 3, 4, 5, 6, 7})
	assert.Equal(t, []int{0, 4, 2, 6, 1, 5, 3, 7}, order(all))
	assert.Equal(t, CPU{ID: 7, Core: 3, Node: 1, Package: 1}, all[7])

	// Devices forbidden to a container do not count.
	part := readCPUs(root, []int{1, 4, 6, 7})
	assert.Equal(t, []int{4, 6, 1, 7}, order(part))
	assert.Equal(t, CPU{ID: 4, Core: 0, Node: 0, Package: 0}, part[0])

	// Nothing to read, or nonsense.
	want := []CPU{{ID: 2, Core: 2}, {ID: 5, Core: 5}}
	assert.Equal(t, want, readCPUs(t.TempDir(), []int{5, 2}))
	assert.Equal(t, want, readCPUs(tree(t, map[string]string{
		"sys/devices/system/node/node0/cpulist":                     "what",
		"sys/devices/system/cpu/cpu2/topology/thread_siblings_list": "3-999999999",
		"sys/devices/system/cpu/cpu5/topology/thread_siblings_list": "0-1",
		"sys/devices/system/cpu/cpu5/topology/physical_package_id":  "",
	}), []int{5, 2}))
}

func TestReadThisHost(t *testing.T) {
	inv := must.Get(Read(nil, 0))(t)
	assert.Len(t, inv.CPUs, runtime.NumCPU())
	assert.Empty(t, inv.GPUs.LimitedBy)
}

// On a machine with GPUs, the vendor's tool is the judge.
func TestGPUsOfThisHost(t *testing.T) {
	if _, err := os.Stat("/dev/nvidia0"); err != nil {
		t.Skip("needs a GPU of NVIDIA")
	}
	cmd := exec.Command("nvidia-smi", "-L")
	out := must.Get(cmd.Output())(t)
	n := 0
	for line := range bytes.Lines(out) {
		if bytes.HasPrefix(line, []byte("GPU ")) { // slices are indented under their GPU
			n++
		}
	}
	g := ReadGPUs(nil)
	assert.Equal(t, VendorNVIDIA, g.Vendor)
	assert.Equal(t, n, g.Count)
	assert.Len(t, g.Visible, n)
	assert.Empty(t, ReadGPUs([]string{"CUDA_VISIBLE_DEVICES=-1"}).Visible)
}

func TestMemory(t *testing.T) {
	const meminfo = "MemTotal:       24000000 kB\nMemFree: 1 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"nothing is known", nil, 0},
		{"the machine's", map[string]string{"proc/meminfo": meminfo}, 24000000 << 10},
		{"no limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 24000000 << 10},
		{"a limit", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "2000\n"}, 2000},
		{"a lower limit above", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "2000\n", "sys/fs/cgroup/a/memory.max": "1000\n",
		}, 1000},
		{"version 1", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "5:cpu:/x\n4:memory:/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "3000\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 3000},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range c.files {
				path := filepath.Join(root, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			assert.Equal(t, c.want, readMemory(root))
		})
	}
}
