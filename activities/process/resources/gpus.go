package resources

import (
	"cmp"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Vendor is the maker of a host's GPUs. It determines which variables programs read.
type Vendor string

// The values of [Vendor].
const (
	VendorNone   Vendor = ""
	VendorNVIDIA Vendor = "nvidia"
	VendorAMD    Vendor = "amd"
)

// GPUs are the host worker's visible GPUs.
type GPUs struct {
	Vendor Vendor
	// Count counts the visible GPUs, including those that the host worker does not use.
	Count int
	// Visible lists the GPUs that the host worker uses, in the format of CUDA_VISIBLE_DEVICES.
	Visible []string
	// LimitedBy is the environment variable that limits Visible, or empty if all GPUs are visible.
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
			continue // HIP treats an empty variable as unset
		}
		g.LimitedBy, g.Visible = name, visibleIn(text, g.Count)
		return g
	}
	for i := range g.Count {
		g.Visible = append(g.Visible, strconv.Itoa(i))
	}
	return g
}

// variable returns the last variable with the given name, which is the one that takes effect on
// exec.
func variable(env []string, name string) (value string, ok bool) {
	for _, kv := range env {
		if v, found := strings.CutPrefix(kv, name+"="); found {
			value, ok = v, true
		}
	}
	return value, ok
}

// visibleIn reads a list the way CUDA does. It stops before the first entry that does not name a
// device, so "-1" is an empty list. A count of 0 means that the device numbers are unknown.
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

// Variables returns the variables that make only the given devices visible to a task.
func (g GPUs) Variables(devices []string) map[string]string {
	list := strings.Join(devices, ",")
	if g.Vendor != VendorAMD {
		return map[string]string{cudaVisible: list}
	}
	list = cmp.Or(list, "-1") // to HIP, an empty list would mean all GPUs
	return map[string]string{cudaVisible: list, hipVisible: list}
}

// countNVIDIA counts the GPUs with device files that may be opened. A running driver lists its
// GPUs. In a container, that list may contain all of the machine's GPUs, or be missing.
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

// countAMD is like countNVIDIA, and counts the compute nodes that are GPUs.
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

// AMDGPUs maps the driver's IDs of AMD compute nodes that are GPUs to the numbers N of their device
// files /dev/dri/renderD<N>.
func AMDGPUs(root string) map[string]int {
	gpus := map[string]int{}
	listed, _ := filepath.Glob(filepath.Join(root, "sys/class/kfd/kfd/topology/nodes/*/properties")) // the pattern is valid
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

// usableNodes returns the numbers of the device files of that name that may be opened. Unlike
// opening a device file, checking its permissions does not wake the device. The check includes a
// container's device rules.
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

// numberAfter finds the line "label number" in a file.
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
