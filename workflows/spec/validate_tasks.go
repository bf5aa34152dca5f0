package spec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// TypeChief is the task type of the chief, which is its task 0.
const TypeChief = "chief"

func checkTasks(c *checker, s *RunSpec) {
	if len(s.Tasks) == 0 {
		c.add("tasks", "missing", "define at least one group, such as "+fieldOf("RunSpec.tasks").example)
		checkCommands(c, s)
		return
	}
	if n := s.total(); n > MaxTasks {
		c.add("tasks", fmt.Sprintf("the run has %d tasks; at most %d are allowed", n, MaxTasks), "use fewer tasks, or start several runs")
	}
	first := map[string]int{}
	endpoints := map[string]string{}
	for i, g := range s.Tasks {
		path := indexPath("tasks", i)
		checkType(c, path, g.Type)
		if g.Type != "" {
			if before, twice := first[g.Type]; twice {
				c.add(path+".type", fmt.Sprintf("%s is already the type of tasks[%d]", Quote(g.Type), before), "put all tasks of a type into one group")
			} else {
				first[g.Type] = i
			}
		}
		g.checkCount(c, path)
		g.checkAddresses(c, path, endpoints)
		g.checkOverrides(c, path)
		checkGPUs(c, path, g.Devices, g.GPUsPerTask)
		checkMask(c, path+".logs.redirects", g.Logs.Redirects, "index", "the group", max(g.Size(), 0))
		checkMask(c, path+".logs.tee", g.Logs.Tee, "index", "the group", max(g.Size(), 0))
	}
	checkChiefs(c, s)
	checkCommands(c, s)
	checkExecSize(c, s)
}

// total returns the number of tasks, or a number that exceeds every limit if the sum might
// overflow.
func (s *RunSpec) total() int {
	total := 0
	for _, g := range s.Tasks {
		if n := g.Size(); n > 0 {
			total += min(n, math.MaxInt-total)
		}
	}
	return total
}

func checkType(c *checker, path, typ string) {
	switch {
	case typ == "":
		c.add(path+".type", "missing", "specify the task type, such as "+fieldOf("TaskGroup.type").example)
	case !validType(typ):
		c.add(path+".type", Quote(typ)+" is not a task type", "use lower-case letters, digits and _, with words joined by -, such as worker or param-server")
	}
}

func (g TaskGroup) checkCount(c *checker, path string) {
	switch {
	case g.Count == nil:
	case g.Addresses != nil:
		c.add(path+".count", "cannot be combined with addresses, which determine the count", "remove one of them")
	case *g.Count < 1:
		c.add(path+".count", fmt.Sprintf("must be at least 1, not %d", *g.Count), "remove the group if it has no tasks")
	}
}

func (g TaskGroup) checkAddresses(c *checker, path string, endpoints map[string]string) {
	if g.Addresses != nil && len(g.Addresses) == 0 {
		c.add(path+".addresses", "is empty", "add an address for each task, or use a count instead")
	}
	for i, a := range g.Addresses {
		p := indexPath(path+".addresses", i)
		if c.isMalformed(p) {
			continue
		}
		host, port, err := SplitAddress(a)
		if err != nil {
			c.addError(p, err)
			continue
		}
		if port == 0 {
			continue // any number of tasks may be pinned to one host
		}
		e := endpoint(host, port)
		if before, twice := endpoints[e]; twice {
			c.add(p, fmt.Sprintf("%s of %s is already the address of %s", Quote(a), TaskName(g.Type, i), before), "give each task its own port")
			continue
		}
		endpoints[e] = TaskName(g.Type, i)
	}
}

func (g TaskGroup) checkOverrides(c *checker, path string) {
	for _, index := range sortedKeys(g.Overrides) {
		p := fieldPath(path+".overrides", index)
		if n, err := strconv.Atoi(index); err != nil || !indexRegexp().MatchString(index) {
			c.add(p, Quote(index)+" is not an index of a task", `write "0", "1", …`)
		} else if n >= g.Size() && g.Size() > 0 {
			c.add(p, fmt.Sprintf("the group has no task %d", n), fmt.Sprintf("indices are 0 to %d", g.Size()-1))
		}
	}
}

// checkChiefs refuses more than one chief.
func checkChiefs(c *checker, s *RunSpec) {
	chiefs := 0
	for _, g := range s.Tasks {
		if g.Type == TypeChief {
			chiefs += min(max(g.Size(), 0), math.MaxInt-chiefs)
		}
	}
	if chiefs > 1 {
		c.add("tasks", TwoChiefsText(chiefs), "use a single group of type chief, with count: 1")
	}
}

// checkCommands reports tasks without a command.
func checkCommands(c *checker, s *RunSpec) {
	if len(s.Command) > 0 || c.isMalformed("command") {
		return
	}
	var without []string
	for i, g := range s.Tasks {
		path := indexPath("tasks", i)
		if len(g.Command) > 0 || c.isMalformed(path+".command") {
			continue
		}
		own := 0
		for _, index := range sortedKeys(g.Overrides) {
			if len(g.Overrides[index].Command) > 0 || c.isMalformed(fieldPath(path+".overrides", index)+".command") {
				own++
			}
		}
		if own < g.Size() {
			without = append(without, path)
		}
	}
	if len(without) == 0 && len(s.Tasks) > 0 {
		return
	}
	message := "missing"
	if len(without) < len(s.Tasks) {
		message += ", and not set for " + shorten.List(without, 3)
	}
	c.add("command", message, "specify the argv, such as "+fieldOf("RunSpec.command").example)
}

// checkBarriers refuses local barriers if tasks are pinned to several hosts. If only some tasks are
// pinned, this is checked when the tasks are placed.
func checkBarriers(c *checker, s *RunSpec) {
	if s.Barriers != BarriersLocal {
		return
	}
	if hosts := s.pinnedHosts(); len(hosts) > 1 {
		c.add("barriers", fmt.Sprintf("local barriers require all tasks on one host, but the addresses name %s", shorten.List(hosts, 3)),
			"write barriers: "+string(BarriersServer)+", or pin all tasks to one host")
	}
}

// pinnedHosts returns the hosts in the addresses, except loopback addresses.
func (s *RunSpec) pinnedHosts() []string {
	var hosts []string
	for _, g := range s.Tasks {
		for _, a := range g.Addresses {
			host, _, err := SplitAddress(a)
			if err != nil || IsLoopback(host) {
				continue
			}
			// Host names are case-insensitive.
			if !slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) }) {
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}
