package spec

import (
	"cmp"
	"fmt"
	"slices"
)

// Elastic says how an elastic run comes to its hosts: one whose [Hosts.Count] is a range.
type Elastic struct {
	JoinWait *Duration `json:"join_wait,omitempty"`
	Grow     Grow      `json:"grow,omitempty"`
}

// Grow says when an elastic run that has begun gets more hosts.
type Grow string

// The values of [Grow].
const (
	GrowNever Grow = "never"
	// GrowNextGeneration has each generation begin with the most hosts that there are.
	GrowNextGeneration Grow = "next-generation"
)

var grows = []Grow{GrowNever, GrowNextGeneration}

// IsElastic reports whether the number of hosts may change from one generation to the next.
func (s *RunSpec) IsElastic() bool {
	least, most := s.Hosts.Count.Bounds()
	return least < most
}

// TasksPerHost returns the number of tasks that an elastic run has on each of its hosts.
func (s *RunSpec) TasksPerHost() int {
	_, most := s.Hosts.Count.Bounds()
	return s.total() / most
}

// Sized returns the spec of a generation that has so many tasks: fewer of the last type. It
// shares all else with s.
func (s *RunSpec) Sized(tasks int) *RunSpec {
	if tasks >= s.total() {
		return s
	}
	return s.resized(tasks)
}

// Whole returns the spec of an elastic run of which s is a generation, with perHost tasks on
// each of its hosts; 0: all of s are on one host. It shares all else with s.
func (s *RunSpec) Whole(perHost int) *RunSpec {
	n := s.total()
	perHost = cmp.Or(perHost, n)
	_, most := s.Hosts.Count.Bounds()
	if !s.IsElastic() || n > MaxTasks || most > MaxTasks || perHost*most <= n {
		return s
	}
	return s.resized(perHost * most)
}

// resized returns the spec with so many tasks, by more or fewer of the last type.
func (s *RunSpec) resized(tasks int) *RunSpec {
	r := *s
	r.Tasks = slices.Clone(s.Tasks)
	last := &r.Tasks[len(r.Tasks)-1]
	last.Count = new(last.Size() + tasks - s.total())
	return &r
}

// checkElastic holds an elastic run against what it needs.
func (c *checker) checkElastic(s *RunSpec) {
	least, most := s.Hosts.Count.Bounds()
	n := s.total()
	switch {
	case c.isMalformed("hosts.count") || c.isMalformed("tasks") || n < 1 || least > most || s.Hosts.Count != "" && least < 1:
		return
	case !s.IsElastic():
		const message, remedy = "has no effect without a range of hosts", `write hosts: {count: "2:4"}, or leave it out`
		if w := s.Elastic.JoinWait; w != nil && *w != DefaultJoinWait {
			c.add("elastic.join_wait", message, remedy)
		}
		if cmp.Or(s.Elastic.Grow, DefaultGrow) != DefaultGrow {
			c.add("elastic.grow", message, remedy)
		}
		return
	}
	if s.RestartScope != RestartScopeGroup {
		c.add("restart_scope", fmt.Sprintf("a run on %s hosts starts all its tasks again when the number of its hosts changes", s.Hosts.Count),
			"write restart_scope: group, and max_restarts: 0 if it is to fail with its programs")
	}
	for i, g := range s.Tasks {
		if g.Addresses != nil {
			c.add(indexPath("tasks", i)+".addresses", fmt.Sprintf("a run on %s hosts goes where there is room", s.Hosts.Count), "give a count, or one number of hosts")
		}
	}
	last := s.Tasks[len(s.Tasks)-1]
	switch each := n / most; {
	case most > n:
	case n%most != 0:
		c.add("hosts.count", fmt.Sprintf("%d tasks on at most %d hosts are not the same number on each", n, most),
			fmt.Sprintf("have %d or %d tasks", each*most, (each+1)*most))
	case each*least <= n-last.Size():
		c.add("hosts.count", fmt.Sprintf("is %s, and with %d tasks on each of %d hosts none is of type %s", s.Hosts.Count, each, least, last.Type),
			"have more hosts at least, and the type last of which there may be fewer")
	}
}
