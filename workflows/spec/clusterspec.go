package spec

import (
	"reflect"
	"slices"
	"strings"
)

// tfTaskTypes are TensorFlow's task types, in rank order.
var tfTaskTypes = []string{"chief", "master", "worker", "ps", "evaluator"}

func isTaskTypeOfTF(name string) bool { return slices.Contains(tfTaskTypes, name) }

// FromClusterSpec converts a TensorFlow cluster spec, which maps task types to addresses, to a
// run spec. A cluster spec is unordered, so the rank order is chief, master, worker, ps,
// evaluator, then other types by name. Types without addresses are dropped.
//
// The caller adds the command.
func FromClusterSpec(cluster map[string][]string) *RunSpec {
	s := &RunSpec{}
	add := func(typ string) {
		if len(cluster[typ]) > 0 {
			s.Tasks = append(s.Tasks, TaskGroup{Type: typ, Addresses: slices.Clone(cluster[typ])})
		}
	}
	for _, typ := range tfTaskTypes {
		add(typ)
	}
	for _, typ := range sortedKeys(cluster) {
		if !isTaskTypeOfTF(typ) {
			add(typ)
		}
	}
	return s
}

// isClusterSpec distinguishes a cluster spec, bare or wrapped in "cluster" as in TF_CONFIG, from
// a run spec. A document with a field of a run spec counts as a run spec.
func isClusterSpec(root *node) bool {
	if cluster, ok := root.get("cluster"); ok && cluster.kind == kindObject {
		_, hasTasks := root.get("tasks")
		_, hasCommand := root.get("command")
		return !hasTasks && !hasCommand
	}
	known := false
	for i := range root.members {
		name := root.members[i].name
		if _, ok := fieldNamed(reflect.TypeFor[RunSpec](), name); ok {
			return false
		}
		known = known || isTaskTypeOfTF(name)
	}
	return known
}

// readClusterSpec fills s from a cluster spec. Of TF_CONFIG's other fields, it uses rpc_layer. It
// ignores "task", which identifies one process although a run starts all of them, and
// "environment", which only marks a TF_CONFIG.
func (c *checker) readClusterSpec(root *node, s *RunSpec) {
	cluster, path := root, ""
	if wrapped, ok := root.get("cluster"); ok {
		cluster, path = wrapped, "cluster"
		seen := map[string]int{}
		for i := range root.members {
			m := &root.members[i]
			switch {
			case c.givenTwice(seen, fieldPath("", m.name), m):
			case m.name == "cluster", m.name == "task", m.name == "environment", m.value.kind == kindNull:
			case m.name == "rpc_layer" && m.value.kind == kindText:
				s.RPCLayer = m.value.text
			case m.name == "rpc_layer":
				c.malform("rpc_layer", m.line, "must be a string, not "+m.value.describe(), "for example, rpc_layer: grpc")
			default:
				c.malform(fieldPath("", m.name), m.line, "not a field of TF_CONFIG",
					"its fields are cluster, task, rpc_layer and environment; use a run spec to set anything else")
			}
		}
	}
	addresses := map[string][]string{}
	seen := map[string]int{}
	for i := range cluster.members {
		m := &cluster.members[i]
		if p := fieldPath(path, m.name); !c.givenTwice(seen, p, m) {
			addresses[m.name] = c.readAddresses(p, m)
		}
	}
	s.Tasks = FromClusterSpec(addresses).Tasks
	if len(s.Tasks) == 0 && len(c.malformed) > 0 {
		// If all task types were malformed, do not report missing tasks as well.
		c.malformed = setKey(c.malformed, "tasks")
	}
}

func (c *checker) readAddresses(path string, m *member) []string {
	const remedy = `write the addresses of all its tasks: ["host-a:2222", "host-b:2222"]`
	switch m.value.kind {
	case kindList:
	case kindNull:
		return nil
	case kindObject:
		c.malform(path, m.line, "is a sparse cluster spec (tasks by index, with gaps), but a run starts every task", remedy)
		return nil
	case kindNumber:
		c.malform(path, m.line, "must be a list of addresses, not "+m.value.describe(),
			"to run tasks without addresses, write a run spec: tasks: [{type: "+strings.TrimSpace(cut(m.name))+", count: "+cut(m.value.text)+"}]")
		return nil
	default:
		c.malform(path, m.line, "must be a list of addresses, not "+m.value.describe(), remedy)
		return nil
	}
	var list []string
	for i := range m.value.items {
		item := &m.value.items[i]
		if item.kind != kindText {
			c.malform(indexPath(path, i), item.line, "must be a string, not "+item.describe(), `write "host:port"`)
			continue
		}
		list = append(list, item.text)
	}
	return list
}
