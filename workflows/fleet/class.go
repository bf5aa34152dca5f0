package fleet

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// class is the set of hosts, in any state, that may be used by demands with the same patterns and
// constraints. If every group of a demand names its host, the class consists of these hosts.
type class struct {
	hosts []*host
	err   error // set if a constraint does not parse
	// version is the roster version that hosts were chosen from.
	version int
	// lax reports whether tasks may run without GPUs, because the hosts all lack GPUs, or all lack
	// a known driver.
	lax bool
	// slots is the hosts' total if all of them may be oversubscribed, and 0 otherwise.
	slots int
}

// share returns how many tasks a host gets in proportion to its slots. The shares of all hosts add
// up to tasks. Each host must therefore be empty, and no other run fits on it.
func (c *class) share(h *host, tasks int) int {
	before := 0
	for _, o := range c.hosts[:slices.Index(c.hosts, h)] {
		before += o.Slots
	}
	return tasks*(before+h.Slots)/c.slots - tasks*before/c.slots
}

// selects reports whether a pattern matches name, or whether there are no patterns.
func selects(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// meets reports whether a host meets a constraint. A constraint on GPU model or memory is met if
// all GPUs meet it. A missing label is not equal to any value.
func meets(h *Host, c spec.Constraint) bool {
	switch c.Key {
	case spec.KeyName:
		return (h.Name == c.Value) == (c.Op == "==")
	case spec.KeyGPUModel:
		if c.Op == "!=" {
			return !slices.ContainsFunc(h.GPUs, func(g GPU) bool { return isModel(g.Model, c.Value) })
		}
		return len(h.GPUs) > 0 && !slices.ContainsFunc(h.GPUs, func(g GPU) bool { return !isModel(g.Model, c.Value) })
	case spec.KeyGPUMemory:
		return len(h.GPUs) > 0 && !slices.ContainsFunc(h.GPUs, func(g GPU) bool { return !compares(float64(g.Memory), c) })
	case spec.KeyGPUCount:
		return compares(float64(len(h.GPUs)), c)
	case spec.KeyMemory:
		return compares(float64(h.Memory), c)
	case spec.KeyCPUs:
		return compares(float64(h.CPUs), c)
	case spec.KeySlots:
		return compares(float64(cmp.Or(h.Slots, noBound)), c)
	}
	label, has := h.Labels[c.Key]
	number, isNumber := spec.ParseNumber(label)
	switch {
	case !has:
		return c.Op == "!="
	case c.IsNumber && isNumber:
		return compares(number, c)
	}
	return c.Op == "==" && label == c.Value || c.Op == "!=" && label != c.Value
}

func compares(n float64, c spec.Constraint) bool {
	switch c.Op {
	case "==":
		return n == c.Number
	case "!=":
		return n != c.Number
	case ">=":
		return n >= c.Number
	case "<=":
		return n <= c.Number
	case ">":
		return n > c.Number
	}
	return n < c.Number
}

// isModel reports whether a GPU is of a model. Drivers report long names, such as "NVIDIA
// A100-SXM4-40GB" for an A100, so some words of the name are enough.
func isModel(name, wanted string) bool {
	words, want := modelWords(name), modelWords(wanted)
	for i := 0; len(want) > 0 && i+len(want) <= len(words); i++ {
		if slices.Equal(words[i:i+len(want)], want) {
			return true
		}
	}
	return false
}

func modelWords(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == ' ' || r == '-' || r == '_' })
}
