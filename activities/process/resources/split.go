package resources

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Share is a task's share of its host.
type Share struct {
	// Devices are the GPUs that the task sees. If nil, the task sees the host worker's GPUs.
	Devices []string
	// CPUs are the CPUs that the task is bound to. If empty, the task is not bound.
	CPUs []int
}

// Wanted reports whether a spec divides devices or CPUs.
func Wanted(s *spec.RunSpec) bool {
	return s.Devices != nil || s.CPUs != nil || s.GPUsPerTask != nil || slices.ContainsFunc(s.Tasks, func(g spec.TaskGroup) bool {
		return g.Devices != nil || g.CPUs != nil || g.GPUsPerTask != nil
	})
}

// Split returns the share of each task on host. tasks are the run's tasks on the host, in local
// rank order. added are tasks added to the running run. Because existing tasks keep their shares,
// each added task shares with an existing task of its pool, chosen by index. Split returns either
// shares or all problems.
func (inv Inventory) Split(s *spec.RunSpec, host string, tasks, added []spec.Task) (map[string]Share, []spec.Problem) {
	dealt, problems := inv.deal(s, host, tasks, added)
	sharing := func(t spec.Task) bool { return s.GPUsPerTaskOf(t.Type) == 0 }
	devices, more := shareOut(poolsOf(s, "devices", s.DevicesOf, filter(tasks, sharing), filter(added, sharing)),
		func(p pool, m int) ([][]string, *spec.Problem) { return inv.GPUs.split(p, host, m) })
	problems = append(problems, more...)
	maps.Copy(devices, dealt)
	cpus, more := shareOut(poolsOf(s, "cpus", s.CPUsOf, tasks, added),
		func(p pool, m int) ([][]int, *spec.Problem) { return splitCPUs(inv.CPUs, p, host, m) })
	if problems = append(problems, more...); len(problems) > 0 {
		return nil, problems
	}
	shares := map[string]Share{}
	for _, t := range slices.Concat(tasks, added) {
		shares[t.Name()] = Share{Devices: devices[t.Name()], CPUs: cpus[t.Name()]}
	}
	return shares, nil
}

// deal assigns GPUs to the tasks that get exclusive ones. It uses the first GPUs that are not in
// any of the run's lists.
func (inv Inventory) deal(s *spec.RunSpec, host string, tasks, added []spec.Task) (map[string][]string, []spec.Problem) {
	left := slices.Clone(inv.GPUs.Visible)
	for _, t := range tasks {
		if list, _ := s.DevicesOf(t.Type); s.GPUsPerTaskOf(t.Type) == 0 && !list.Auto() {
			left = filter(left, func(d string) bool { return !slices.Contains(list.Expand(), d) })
		}
	}
	has, wanted := len(left), 0
	shares := map[string][]string{}
	byType := map[string][]string{} // tasks with dealt GPUs, by type
	for _, t := range tasks {
		n := s.GPUsPerTaskOf(t.Type)
		if wanted += n; n > 0 && wanted <= has {
			shares[t.Name()], left = left[:n:n], left[n:]
			byType[t.Type] = append(byType[t.Type], t.Name())
		}
	}
	if wanted > has {
		return nil, []spec.Problem{{
			Path:    "gpus_per_task",
			Message: fmt.Sprintf("%s on host %s need %s, but it has %d for them", units.Count(len(tasks), "task", "tasks"), host, units.Count(wanted, "GPU", "GPUs"), has),
			Remedy:  "use fewer tasks, or fewer GPUs for each",
		}}
	}
	for _, t := range added {
		if same := byType[t.Type]; len(same) > 0 {
			shares[t.Name()] = shares[same[t.Index%len(same)]]
		}
	}
	return shares, nil
}

// filter returns the wanted items.
func filter[T any](list []T, wanted func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(item T) bool { return !wanted(item) })
}

// pool is a set of tasks that share a list.
type pool struct {
	// path is the list's path in the spec.
	path         string
	list         spec.Resources
	tasks, added []spec.Task
}

// poolsOf finds the pools of tasks, each with its list, in the order of their
// first tasks.
func poolsOf(s *spec.RunSpec, field string, of func(typ string) (spec.Resources, bool), tasks, added []spec.Task) []*pool {
	byPath := map[string]*pool{}
	var all []*pool
	for i, t := range slices.Concat(tasks, added) {
		list, shared := of(t.Type)
		if list == nil {
			continue
		}
		path := field
		if !shared {
			group := slices.IndexFunc(s.Tasks, func(g spec.TaskGroup) bool { return g.Type == t.Type })
			path = fmt.Sprintf("tasks[%d].%s", group, field)
		}
		p, ok := byPath[path]
		if !ok {
			p = &pool{path: path, list: list}
			byPath[path], all = p, append(all, p)
		}
		if i < len(tasks) {
			p.tasks = append(p.tasks, t)
		} else {
			p.added = append(p.added, t)
		}
	}
	return all
}

// shareOut gives each task its part of its pool's list. If the parts are nil, there is nothing to
// divide.
func shareOut[T any](pools []*pool, split func(p pool, m int) ([][]T, *spec.Problem)) (map[string][]T, []spec.Problem) {
	shares := map[string][]T{}
	var problems []spec.Problem
	for _, p := range pools {
		m := max(1, len(p.tasks))
		parts, problem := split(*p, m)
		if problem != nil {
			problem.Path = p.path
			problems = append(problems, *problem)
		}
		if parts == nil {
			continue
		}
		for i, t := range p.tasks {
			shares[t.Name()] = parts[i]
		}
		for _, t := range p.added {
			shares[t.Name()] = parts[t.Index%m]
		}
	}
	return shares, problems
}

// split gives device i to task i mod m.
func (g GPUs) split(p pool, host string, m int) ([][]string, *spec.Problem) {
	parts := make([][]string, m)
	if len(p.list) == 0 {
		for i := range parts {
			parts[i] = []string{}
		}
		return parts, nil
	}
	devices := g.Visible
	if !p.list.Auto() {
		devices = p.list.Expand()
		if problem := g.check(devices, host); problem != nil {
			return nil, problem
		}
	} else if len(devices) == 0 {
		return nil, nil
	}
	if len(devices) < m {
		return nil, &spec.Problem{
			Message: fmt.Sprintf("%d tasks on host %[4]s share %[2]s (%[3]s), but each needs one", m, units.Count(len(devices), "device", "devices"), strings.Join(p.list, ","), host),
			Remedy:  "set devices: [] for some types, or use fewer tasks",
		}
	}
	for i, d := range devices {
		parts[i%m] = append(parts[i%m], d)
	}
	return parts, nil
}

// check refuses numbers of devices that this host does not have.
func (g GPUs) check(devices []string, host string) *spec.Problem {
	for _, d := range devices {
		isNumber := strings.Trim(d, "0123456789") == ""
		switch {
		case g.LimitedBy == "" && g.Count == 0 && isNumber: // names cannot be checked
			return &spec.Problem{
				Message: fmt.Sprintf("host %[2]s has no GPUs, so device %[1]s does not exist", d, host),
				Remedy:  "omit it, or set " + cudaVisible + " for clusterrun if the host has GPUs",
			}
		case g.LimitedBy != "" && len(g.Visible) == 0:
			return &spec.Problem{
				Message: fmt.Sprintf("device %s cannot be used on host %s: the host worker was started with a %s that hides all devices", d, host, g.LimitedBy),
				Remedy:  "start it without that variable, or list these devices in it",
			}
		case g.LimitedBy != "" && isNumber && !slices.Contains(g.Visible, d):
			return &spec.Problem{
				Message: fmt.Sprintf("device %s cannot be used on host %s: the host worker's %s lists %s", d, host, g.LimitedBy, strings.Join(g.Visible, ",")),
				Remedy:  "list some of them, or write auto for all",
			}
		case g.LimitedBy == "" && g.Count > 0 && isNumber && !slices.Contains(g.Visible, d):
			return &spec.Problem{
				Message: fmt.Sprintf("device %s does not exist on host %s, which has %s, numbered from 0", d, host, units.Count(g.Count, "device", "devices")),
				Remedy:  "list existing ones, or write auto for all",
			}
		}
	}
	return nil
}
