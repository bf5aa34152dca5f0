package resources

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// splitCPUs gives each of m tasks a block of CPUs.
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
					Remedy:  "list some of these, or write auto for all of them",
				}
			}
		}
		cpus = slices.DeleteFunc(slices.Clone(have), func(c CPU) bool { return !slices.Contains(wanted, strconv.Itoa(c.ID)) })
	}
	return cutCPUs(cpus, m), nil
}

// cutCPUs cuts CPUs in topology order into m blocks: of whole cores where there
// are enough, else of single CPUs, and where these are not enough either each
// task gets one that others have, too.
func cutCPUs(cpus []CPU, m int) [][]int {
	parts := make([][]int, m)
	if m > len(cpus) {
		for i := range parts {
			parts[i] = []int{cpus[i%len(cpus)].ID}
		}
		return parts
	}
	units := coresOf(cpus)
	// joins[i] is what a block loses that has units i-1 and i.
	joins := make([]int, len(units))
	for i := 1; i < len(units); i++ {
		if units[i][0].domain() != units[i-1][0].domain() {
			joins[i] = 1
		}
	}
	if m > len(units) {
		units = units[:0]
		for i := range cpus {
			units = append(units, cpus[i:i+1])
		}
		joins = make([]int, len(units))
		for i := 1; i < len(cpus); i++ {
			switch {
			case cpus[i].domain() != cpus[i-1].domain():
				joins[i] = len(cpus)
			case cpus[i].Core != cpus[i-1].Core:
				joins[i] = 1
			}
		}
	}
	for i, size := range blockSizes(joins, m) {
		for _, c := range slices.Concat(units[:size]...) {
			parts[i] = append(parts[i], c.ID)
		}
		units = units[size:]
	}
	return parts
}

// domain returns what a task's CPUs had best have in common: memory.
func (c CPU) domain() [2]int { return [2]int{c.Package, c.Node} }

// coresOf puts the CPUs of one core together.
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

// blockSizes returns the sizes of m blocks of consecutive units, which differ by at
// most one, such that the blocks together lose least.
func blockSizes(joins []int, m int) []int {
	size, longer := len(joins)/m, len(joins)%m
	lost := make([]int, len(joins)+1) // before each unit
	for i, j := range joins {
		lost[i+1] = lost[i] + j
	}
	// Of the blocks from b on, where k of those before are longer: what they lose
	// at best, and whether the first of them is longer then.
	best := make([]int, longer+1)
	long := make([][]bool, m)
	for b := m - 1; b >= 0; b-- {
		long[b] = make([]bool, longer+1)
		for k := max(0, longer-(m-b)); k <= min(b, longer); k++ {
			start := b*size + k
			loss := func(n, after int) int { return lost[start+n] - lost[start+1] + best[after] }
			mayBeShort := longer-k <= m-b-1
			switch {
			case k == longer:
				best[k] = loss(size, k)
			case !mayBeShort || loss(size+1, k+1) <= loss(size, k):
				best[k], long[b][k] = loss(size+1, k+1), true
			default:
				best[k] = loss(size, k)
			}
		}
	}
	sizes := make([]int, m)
	k := 0
	for b := range sizes {
		sizes[b] = size
		if long[b][k] {
			sizes[b]++
			k++
		}
	}
	return sizes
}

// formatList writes CPUs as the kernel does.
func formatList(cpus []CPU) string {
	ids := make([]int, 0, len(cpus))
	for _, c := range cpus {
		ids = append(ids, c.ID)
	}
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
