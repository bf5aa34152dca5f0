package resources

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// splitCPUs divides CPUs into blocks, one for each of m tasks.
func splitCPUs(have []CPU, p pool, host string, m int) ([][]int, *spec.Problem) {
	if len(p.list) == 0 {
		return nil, nil
	}
	cpus := have
	if !p.list.Auto() {
		wanted := p.list.Expand()
		for _, w := range wanted {
			if !slices.ContainsFunc(have, func(c CPU) bool { return strconv.Itoa(c.ID) == w }) {
				return nil, &spec.Problem{
					Message: fmt.Sprintf("CPU %s cannot be used on host %s: the host worker may run on %s", w, host, formatList(have)),
					Remedy:  "list some of them, or write auto for all",
				}
			}
		}
		cpus = slices.DeleteFunc(slices.Clone(have), func(c CPU) bool { return !slices.Contains(wanted, strconv.Itoa(c.ID)) })
	}
	return cutCPUs(cpus, m), nil
}

// cutCPUs cuts CPUs in topology order into m blocks: consisting of whole cores if there are enough,
// and otherwise of single CPUs. If there are fewer CPUs than tasks, each task gets one CPU, which
// it shares. The sizes of blocks differ by at most one core. If possible, each memory node holds
// the same number of blocks.
func cutCPUs(cpus []CPU, m int) [][]int {
	parts := make([][]int, m)
	if m > len(cpus) {
		for i := range parts {
			parts[i] = []int{cpus[i%len(cpus)].ID}
		}
		return parts
	}
	units := coresOf(cpus)
	if m > len(units) {
		units = slices.Collect(slices.Chunk(cpus, 1))
	}
	// Block i starts at i/m of the units, rounded up.
	begin := func(i int) int { return (i*len(units) + m - 1) / m }
	for i := range parts {
		for _, c := range slices.Concat(units[begin(i):begin(i+1)]...) {
			parts[i] = append(parts[i], c.ID)
		}
	}
	return parts
}

// domain returns what a task's CPUs should share: the memory node.
func (c CPU) domain() [2]int { return [2]int{c.Package, c.Node} }

// coresOf groups CPUs by core.
func coresOf(cpus []CPU) [][]CPU {
	var cores [][]CPU
	for i, c := range cpus {
		if i > 0 && c.Core == cpus[i-1].Core && c.domain() == cpus[i-1].domain() {
			cores[len(cores)-1] = append(cores[len(cores)-1], c)
		} else {
			cores = append(cores, []CPU{c})
		}
	}
	return cores
}

// formatList formats a list of CPUs the way the kernel does.
func formatList(cpus []CPU) string {
	ids := list.Of(cpus, func(c CPU) int { return c.ID })
	slices.Sort(ids)
	var items []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		item := strconv.Itoa(ids[i])
		if j > i {
			item += "-" + strconv.Itoa(ids[j])
		}
		items = append(items, item)
		i = j + 1
	}
	return strings.Join(items, ",")
}
