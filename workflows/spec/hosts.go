package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// Hosts describes where the tasks run, and on how many hosts. In YAML and JSON, it may be a plain
// number, which is the count.
type Hosts struct {
	Count     HostCount `json:"count,omitempty"`
	PerHost   *int      `json:"per_host,omitempty"`
	Select    []string  `json:"select,omitempty"`
	Strategy  Strategy  `json:"strategy,omitempty"`
	Exclusive bool      `json:"exclusive,omitempty"`
}

// HostCount is a number of hosts, such as "4", or an elastic run's range, such as "2:4". JSON and
// YAML also accept a number.
type HostCount string

// Bounds returns the minimum and maximum number of hosts; both are 0 if c is empty.
func (h HostCount) Bounds() (least, most int) {
	from, to, isRange := strings.Cut(string(h), ":")
	least, _ = strconv.Atoi(from)
	if !isRange {
		return least, least
	}
	most, _ = strconv.Atoi(to)
	return least, most
}

// MarshalJSON encodes c as a number unless it is a range.
func (h HostCount) MarshalJSON() ([]byte, error) {
	if decimal(string(h)) {
		return []byte(h), nil
	}
	return json.Marshal(string(h))
}

// UnmarshalJSON parses the output of [HostCount.MarshalJSON]. For specs that people write, use
// [Decode], which describes their mistakes.
func (h *HostCount) UnmarshalJSON(b []byte) error {
	if decimal(string(b)) {
		*h = HostCount(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(h))
}

// Strategy distributes tasks among hosts.
type Strategy string

// The values of [Strategy].
const (
	// StrategyPack fills one host after another.
	StrategyPack Strategy = "pack"
	// StrategySpread deals out tasks one by one over as many hosts as possible.
	StrategySpread Strategy = "spread"
)

var strategies = []Strategy{StrategyPack, StrategySpread}

// Priorities of runs range from FirstPriority, the highest, to LastPriority.
const FirstPriority, LastPriority = 1, 5

var (
	hostsType     = reflect.TypeFor[Hosts]()
	hostCountType = reflect.TypeFor[HostCount]()
)

func (c *checker) fillHostCount(path, key string, n *node, v reflect.Value) bool {
	text := n.text
	if number, ok := n.wholeNumber(); ok {
		text = strconv.Itoa(number)
	} else if n.kind != kindText {
		return c.mismatch(path, key, n, v.Type())
	}
	v.SetString(text)
	return true
}

func (h HostCount) check(c *checker, path string) {
	if h == "" {
		return
	}
	for text := range strings.SplitSeq(string(h), ":") {
		n, err := strconv.Atoi(text)
		if err != nil || strings.Count(string(h), ":") > 1 {
			c.add(path, Quote(string(h))+" is not a valid number of hosts", hostCountRemedy)
			return
		}
		checkNumber(c, path, n, field{least: new(1), most: new(MaxHosts)})
	}
	if least, most := h.Bounds(); least > most {
		c.add(path, fmt.Sprintf("%s has a minimum above its maximum", Quote(string(h))), fmt.Sprintf(`write "%d:%d"`, most, least))
	}
}

func hostCountSchema(f field, nullable bool) object {
	forms := []object{
		{{"type", "integer"}, {"minimum", 1}, {"maximum", MaxHosts}},
		{{"type", "string"}, {"pattern", emptyOr(hostCountPattern, nullable)}},
	}
	if nullable {
		forms = append(forms, object{{"type", "null"}})
	}
	return object{{"description", f.doc}, {"anyOf", forms}}
}

func checkHostPattern(c *checker, p, pattern string) {
	_, err := path.Match(pattern, "")
	switch {
	case pattern == "":
		c.add(p, "is empty", "write a name, or a pattern such as gpu-*")
	case err != nil:
		c.add(p, Quote(pattern)+" is not a pattern", "write a name, or a pattern such as gpu-* or gpu-[1-9]")
	default:
		checkText(c, p, pattern)
	}
}

// checkHosts compares the requested hosts with the tasks.
func checkHosts(c *checker, s *RunSpec) {
	n, h := s.total(), s.Hosts
	if c.isMalformed("tasks") || n < 1 {
		return
	}
	pinned := s.pinnedHosts()
	if len(pinned) > MaxHosts {
		c.add("tasks", fmt.Sprintf("addresses name %d hosts, but a run has at most %d", len(pinned), MaxHosts), "use fewer hosts")
	}
	checkHostCount(c, s, n, pinned)
	for _, host := range pinned {
		if len(h.Select) > 0 && !slices.ContainsFunc(h.Select, func(pattern string) bool {
			ok, err := path.Match(pattern, host)
			return ok || err != nil
		}) {
			c.add("hosts.select", fmt.Sprintf("no pattern matches %s, which is in an address", host), "also select it, or correct the address")
		}
	}
}

func checkHostCount(c *checker, s *RunSpec, n int, pinned []string) {
	h := s.Hosts
	least, most := h.Count.Bounds()
	switch {
	case c.isMalformed("hosts.count") || least < 1 || least > most:
		return
	case most > n:
		c.add("hosts.count", fmt.Sprintf("is %s, but the run has only %s", h.Count, units.Count(n, "task", "tasks")), "use at least one task per host, or fewer hosts")
	case h.PerHost != nil && *h.PerHost > 0 && (n+*h.PerHost-1) / *h.PerHost != most:
		c.add("hosts.per_host", fmt.Sprintf("%s with %d on each host do not make %s", units.Count(n, "task", "tasks"), *h.PerHost, units.Count(most, "host", "hosts")),
			fmt.Sprintf("change the number of tasks to %d, or omit count or per_host", most**h.PerHost))
	case len(pinned) > most:
		c.add("hosts.count", fmt.Sprintf("is %s, but the addresses name %s", h.Count, shorten.List(pinned, 3)), "omit it, or correct the addresses")
	case s.Barriers == BarriersLocal && most > 1:
		c.add("barriers", fmt.Sprintf("local barriers require all tasks on one host, but hosts.count is %s", h.Count), "write barriers: "+string(BarriersServer)+", or count: 1")
	}
}

// Elastic contains the host rules for elastic runs, where [Hosts.Count] is a range.
type Elastic struct {
	JoinWait *Duration `json:"join_wait,omitempty"`
	Grow     Grow      `json:"grow,omitempty"`
}

// Grow controls when a started elastic run gets more hosts.
type Grow string

// The values of [Grow].
const (
	GrowNever Grow = "never"
	// GrowNextGeneration starts each generation on as many hosts as are available.
	GrowNextGeneration Grow = "next-generation"
)

var grows = []Grow{GrowNever, GrowNextGeneration}

// IsElastic reports whether the number of hosts may change between generations.
func (s *RunSpec) IsElastic() bool {
	least, most := s.Hosts.Count.Bounds()
	return least < most
}

// TasksPerHost returns an elastic run's number of tasks per host.
func (s *RunSpec) TasksPerHost() int {
	_, most := s.Hosts.Count.Bounds()
	return s.total() / most
}

// Sized returns the spec for a generation with the given number of tasks, which removes tasks of
// the last type. It shares all other values with s.
func (s *RunSpec) Sized(tasks int) *RunSpec {
	if tasks >= s.total() {
		return s
	}
	return s.resized(tasks)
}

// Whole returns an elastic run's full spec. s is the spec of a generation with perHost tasks per
// host; if perHost is 0, all its tasks are on one host. It shares all other values with s.
func (s *RunSpec) Whole(perHost int) *RunSpec {
	n := s.total()
	perHost = cmp.Or(perHost, n)
	_, most := s.Hosts.Count.Bounds()
	if !s.IsElastic() || n > MaxTasks || most > MaxTasks || perHost*most <= n {
		return s
	}
	return s.resized(perHost * most)
}

// resized returns the spec with n tasks, by changing the last type.
func (s *RunSpec) resized(tasks int) *RunSpec {
	r := *s
	r.Tasks = slices.Clone(s.Tasks)
	last := &r.Tasks[len(r.Tasks)-1]
	last.Count = new(last.Size() + tasks - s.total())
	return &r
}

// checkElastic checks an elastic run's requirements.
func checkElastic(c *checker, s *RunSpec) {
	least, most := s.Hosts.Count.Bounds()
	n := s.total()
	switch {
	case c.isMalformed("hosts.count") || c.isMalformed("tasks") || n < 1 || least > most || s.Hosts.Count != "" && least < 1:
		return
	case !s.IsElastic():
		const message, remedy = "has no effect unless the number of hosts is a range", `write hosts: {count: "2:4"}, or omit it`
		if w := s.Elastic.JoinWait; w != nil && *w != DefaultJoinWait {
			c.add("elastic.join_wait", message, remedy)
		}
		if cmp.Or(s.Elastic.Grow, DefaultGrow) != DefaultGrow {
			c.add("elastic.grow", message, remedy)
		}
		return
	}
	if s.RestartScope != RestartScopeGroup {
		c.add("restart_scope", fmt.Sprintf("a run on %s hosts restarts all tasks when the number of its hosts changes", s.Hosts.Count),
			"write restart_scope: group, and add max_restarts: 0 if the run should fail when its programs fail")
	}
	for i, g := range s.Tasks {
		if g.Addresses != nil {
			c.add(indexPath("tasks", i)+".addresses", fmt.Sprintf("a run on %s hosts is placed on any available hosts", s.Hosts.Count), "omit the addresses, or use a single number of hosts")
		}
	}
	last := s.Tasks[len(s.Tasks)-1]
	switch each := n / most; {
	case most > n:
	case n%most != 0:
		c.add("hosts.count", fmt.Sprintf("%d tasks cannot be divided evenly among up to %d hosts", n, most),
			fmt.Sprintf("use %d or %d tasks", each*most, (each+1)*most))
	case each*least <= n-last.Size():
		c.add("hosts.count", fmt.Sprintf("is %s, and with %d tasks on each of %d hosts, no task of type %s is left", s.Hosts.Count, each, least, last.Type),
			"raise the minimum number of hosts, and put the type that may have fewer tasks last")
	}
}
