package specs

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// parseTask parses a value of --task: TYPE, TYPE=COUNT or TYPE=ADDRESS,….
func parseTask(text string) (spec.TaskGroup, error) {
	typ, value, given := strings.Cut(text, "=")
	g := spec.TaskGroup{Type: strings.TrimSpace(typ)}
	const usage = "write TYPE=COUNT, such as worker=3, or TYPE=ADDRESS,…, such as ps=host:2222"
	switch {
	case g.Type == "":
		return g, fmt.Errorf("--task %q: the task type is missing; %s", text, usage)
	case !given:
		return g, nil
	case value == "":
		return g, fmt.Errorf("--task %q: the count is missing; %s", text, usage)
	}
	if n, err := strconv.Atoi(value); err == nil {
		g.Count = &n
		return g, nil
	}
	for a := range strings.SplitSeq(value, ",") {
		if a = strings.TrimSpace(a); a == "" {
			return g, fmt.Errorf("--task %q: an address is empty; %s", text, usage)
		}
		g.Addresses = append(g.Addresses, a)
	}
	return g, nil
}

// setGroup replaces the count and addresses of the group with the same type, or adds the group.
// Other fields keep their values from the file.
func setGroup(groups []spec.TaskGroup, g spec.TaskGroup) []spec.TaskGroup {
	for i := range groups {
		if groups[i].Type == g.Type {
			groups[i].Count, groups[i].Addresses = g.Count, g.Addresses
			return groups
		}
	}
	return append(groups, g)
}

// defaultType is the task type if only a number was given, like the ranks of mpirun and
// torchrun.
const defaultType = "worker"

// setCount applies -n, the number of tasks, to a run with one task type.
func setCount(groups []spec.TaskGroup, n int) ([]spec.TaskGroup, error) {
	switch len(groups) {
	case 0:
		return []spec.TaskGroup{{Type: defaultType, Count: &n}}, nil
	case 1:
		groups[0].Count, groups[0].Addresses = &n, nil
		return groups, nil
	}
	types := list.Of(groups, func(g spec.TaskGroup) string { return fmt.Sprintf("--task %s=%d", g.Type, n) })
	return groups, fmt.Errorf("-n %d: the spec has %d task types; specify which with %s", n, len(groups), strings.Join(types, " or "))
}
