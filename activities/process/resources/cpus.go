package resources

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// CPU is a processor, identified by the kernel's number, and its position.
type CPU struct {
	ID int
	// Core is the lowest number among the CPUs in the same core.
	Core int
	// Node is the NUMA node.
	Node    int
	Package int
}

// mostCPUs limits CPU numbers, like a spec.
const mostCPUs = 8192

// allowedCPUs returns the CPUs that a process may run on.
func allowedCPUs(pid int) ([]int, error) {
	set := unix.NewCPUSet(mostCPUs)
	if err := unix.SchedGetaffinityDynamic(pid, set); err != nil {
		return nil, fmt.Errorf("find the usable CPUs: %w", err)
	}
	var list []int
	for n := range mostCPUs {
		if set.IsSet(n) {
			list = append(list, n)
		}
	}
	return list, nil
}

// readCPUs returns the CPUs' positions. A CPU whose position cannot be read counts as its own core;
// all such CPUs count as being in one package and node.
func readCPUs(root string, ids []int) []CPU {
	system := filepath.Join(root, "sys/devices/system")
	nodes := nodesOf(system)
	siblings := map[int]CPU{}
	cpus := make([]CPU, 0, len(ids))
	for _, id := range ids {
		c, known := siblings[id]
		if !known {
			topology := filepath.Join(system, fmt.Sprintf("cpu/cpu%d/topology", id))
			c = CPU{Core: id, Package: ReadNumber(filepath.Join(topology, "physical_package_id"))}
			threads := readList(filepath.Join(topology, "thread_siblings_list"))
			if slices.Contains(threads, id) {
				c.Core = slices.Min(threads)
				for _, other := range threads {
					siblings[other] = c
				}
			}
		}
		c.ID, c.Node = id, nodes[id]
		cpus = append(cpus, c)
	}
	slices.SortFunc(cpus, func(a, b CPU) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Node, b.Node),
			cmp.Compare(a.Core, b.Core), cmp.Compare(a.ID, b.ID))
	})
	return cpus
}

// nodesOf returns the NUMA nodes of CPUs.
func nodesOf(system string) map[int]int {
	nodes := map[int]int{}
	files, err := filepath.Glob(filepath.Join(system, "node/node[0-9]*/cpulist"))
	if err != nil {
		return nodes
	}
	for _, path := range files {
		node, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "node"))
		if err != nil {
			continue
		}
		for _, id := range readList(path) {
			nodes[id] = node
		}
	}
	return nodes
}

// ReadNumber reads a number in the kernel's format from a file. It returns 0 if the file cannot be
// read.
func ReadNumber(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return n
}

// readList reads a list in the kernel's format, such as "0-3,8". An invalid list counts as missing.
func readList(path string) []int {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var list []int
	for item := range strings.SplitSeq(strings.TrimSpace(string(b)), ",") {
		first, last, isRange := strings.Cut(item, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || from < 0 || to >= mostCPUs {
			return nil
		}
		for n := from; n <= to; n++ {
			list = append(list, n)
		}
	}
	return list
}
