package drill

import (
	"fmt"
	"maps"
	"slices"
)

// hostsOf returns the hosts of the tasks by generation. A generation of which a task has not
// begun is left out.
func hostsOf(pages []page) map[int]map[string]string {
	tasks, all := map[string]bool{}, map[int]map[string]string{}
	for _, p := range pages {
		tasks[p.task] = true
		if all[p.generation] == nil {
			all[p.generation] = map[string]string{}
		}
		all[p.generation][p.task] = p.host
	}
	maps.DeleteFunc(all, func(_ int, hosts map[string]string) bool { return len(hosts) < len(tasks) })
	return all
}

// checkRanks checks that tasks stay on their hosts when the group restarts, but for a host that
// had a fault.
func checkRanks(pages []page, faulty string) []string {
	var found []string
	all := hostsOf(pages)
	generations := slices.Sorted(maps.Keys(all))
	for i, g := range generations[min(1, len(generations)):] {
		before, after := all[generations[i]], all[g]
		for _, task := range slices.Sorted(maps.Keys(after)) {
			if b, a := before[task], after[task]; a != b && b != faulty {
				found = append(found, fmt.Sprintf("%s moved from %s to %s in generation %d", task, b, a, g))
			}
		}
	}
	return found
}
