package resources

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Vendor is the maker of a host's GPUs. It determines the variables that programs read.
type Vendor string

// The values of [Vendor].
const (
	VendorNone   Vendor = ""
	VendorNVIDIA Vendor = "nvidia"
	VendorAMD    Vendor = "amd"
)

// GPUs are those that the host worker sees.
type GPUs struct {
	Vendor Vendor
	// Count is the number of GPUs that can be seen, including those that the host worker does
	// not use.
	Count int
	// Visible are the GPUs that the host worker uses, named as in CUDA_VISIBLE_DEVICES.
	Visible []string
	// LimitedBy is the variable of its environment that limits Visible. It is empty if all GPUs
	// are visible.
	LimitedBy string
}

const (
	cudaVisible = "CUDA_VISIBLE_DEVICES"
	hipVisible  = "HIP_VISIBLE_DEVICES"
	rocrVisible = "ROCR_VISIBLE_DEVICES"
)

func readGPUs(root string, env []string) GPUs {
	g := GPUs{}
	if n := countNVIDIA(root); n > 0 {
		g.Vendor, g.Count = VendorNVIDIA, n
	} else if n := countAMD(root); n > 0 {
		g.Vendor, g.Count = VendorAMD, n
	}
	limits := []string{cudaVisible}
	if g.Vendor == VendorAMD {
		if text, ok := variable(env, rocrVisible); ok {
			g.Count = len(visibleIn(text, g.Count))
		}
		limits = []string{hipVisible, cudaVisible}
	}
	for _, name := range limits {
		text, ok := variable(env, name)
		if !ok || text == "" && g.Vendor == VendorAMD {
			continue // HIP takes an empty one for none
		}
		g.LimitedBy, g.Visible = name, visibleIn(text, g.Count)
		return g
	}
	for i := range g.Count {
		g.Visible = append(g.Visible, strconv.Itoa(i))
	}
	return g
}

// variable returns the last one of that name, as for exec.
func variable(env []string, name string) (value string, ok bool) {
	for _, kv := range env {
		if v, found := strings.CutPrefix(kv, name+"="); found {
			value, ok = v, true
		}
	}
	return value, ok
}

// visibleIn reads a list as CUDA does: it ends before the first entry that does not name a
// device, so "-1" is an empty list. A count of 0 means that the numbers of the devices are not
// known.
func visibleIn(text string, count int) []string {
	list := []string{}
	seen := map[string]bool{}
	for item := range strings.SplitSeq(text, ",") {
		item = strings.TrimSpace(item)
		if n, err := strconv.Atoi(item); err == nil {
			if n < 0 || count > 0 && n >= count {
				return list
			}
			item = strconv.Itoa(n)
		} else if !strings.HasPrefix(item, "GPU-") && !strings.HasPrefix(item, "MIG-") {
			return list
		}
		if !seen[item] {
			seen[item] = true
			list = append(list, item)
		}
	}
	return list
}

// Variables show a task only these devices.
func (g GPUs) Variables(devices []string) map[string]string {
	list := strings.Join(devices, ",")
	if g.Vendor != VendorAMD {
		return map[string]string{cudaVisible: list}
	}
	list = cmp.Or(list, "-1") // HIP would take an empty list for all
	return map[string]string{cudaVisible: list, hipVisible: list}
}

// countNVIDIA counts the GPUs whose device files may be opened. A running driver lists its
// GPUs. In a container the list may contain the GPUs of the whole machine, or be missing.
func countNVIDIA(root string) int {
	nodes := usableNodes(filepath.Join(root, "dev"), "nvidia")
	listed, err := filepath.Glob(filepath.Join(root, "proc/driver/nvidia/gpus/*/information"))
	if err != nil || len(listed) == 0 {
		return len(nodes)
	}
	n := 0
	for _, path := range listed {
		if minor, ok := numberAfter(path, "Device Minor:"); ok && nodes[minor] {
			n++
		}
	}
	return n
}

// countAMD counts the compute nodes that are GPUs, likewise.
func countAMD(root string) int {
	if unix.Access(filepath.Join(root, "dev/kfd"), unix.R_OK|unix.W_OK) != nil {
		return 0
	}
	nodes := usableNodes(filepath.Join(root, "dev/dri"), "renderD")
	n := 0
	for _, minor := range AMDGPUs(root) {
		if nodes[minor] {
			n++
		}
	}
	return n
}

// AMDGPUs returns the numbers of the device files /dev/dri/renderD<N> of AMD's compute nodes that are
// GPUs, by the IDs that the driver gives them.
func AMDGPUs(root string) map[string]int {
	gpus := map[string]int{}
	listed, _ := filepath.Glob(filepath.Join(root, "sys/class/kfd/kfd/topology/nodes/*/properties")) // the pattern is right
	for _, path := range listed {
		simd, _ := numberAfter(path, "simd_count ")
		minor, ok := numberAfter(path, "drm_render_minor ")
		id, err := os.ReadFile(filepath.Join(filepath.Dir(path), "gpu_id"))
		if simd > 0 && ok && err == nil {
			gpus[strings.TrimSpace(string(id))] = minor
		}
	}
	return gpus
}

// usableNodes returns the numbers of the device files of that name that may be
// opened. To ask is enough, and does not wake the device up as opening would; a
// container's rules for devices are asked as well.
func usableNodes(dir, name string) map[int]bool {
	nodes := map[int]bool{}
	files, err := filepath.Glob(filepath.Join(dir, name+"[0-9]*"))
	if err != nil {
		return nodes
	}
	for _, path := range files {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), name))
		if err == nil && unix.Access(path, unix.R_OK|unix.W_OK) == nil {
			nodes[n] = true
		}
	}
	return nodes
}

// numberAfter finds "label number" among the lines of a file.
func numberAfter(path, label string) (int, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, label); ok {
			n, err := strconv.Atoi(strings.TrimSpace(rest))
			return n, err == nil
		}
	}
	return 0, false
}
