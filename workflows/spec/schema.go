package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// Schema returns the JSON Schema (draft 2020-12) of a run spec, for editors and programs that
// generate specs. The output is deterministic.
//
// Except for TensorFlow cluster specs, the schema accepts every spec that [Decode] accepts. The
// reverse holds except for rules that a schema cannot express legibly:
//   - duplicate keys, half of a surrogate pair, tags in YAML, and the size of the document;
//   - numbers of tasks over all groups: more than [MaxTasks], more than one
//     chief, ranks and indices that the run or group does not have;
//   - comparisons between places: a type or an address given twice, a task that neither it nor its
//     group nor the run gives a command, max_restarts without auto_restart, local barriers of tasks
//     that are pinned to several hosts, numbers and names of hosts that do not match the tasks, the
//     requirements of an elastic run, and relative directories in a run that does not ship a
//     directory or that point outside the shipped one;
//   - the syntax of addresses, prefixes, patterns of hosts, sizes and limits, ranges that run backwards,
//     and durations that are too long, or 0 where that is not allowed;
//   - sizes in bytes of arguments and variables, the values of variables that mean something to
//     clusterrun, where a variable is taken from if that is nowhere or two places, and names in
//     logs.filter;
//   - devices with gpus_per_task;
//   - devices and cpus given twice, and ranges of them that run backwards.
func Schema() []byte {
	root := append(object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"title", "clusterrun run spec"},
		{"description", "What to run: a cluster's tasks, each task's command, and the rules that decide how the run ends."},
	}, schemaOf(reflect.TypeFor[RunSpec](), "", false)...)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil {
		// The schema contains only strings, numbers and lists of these, which always encode.
		panic(fmt.Sprintf("spec: writing the schema: %v", err))
	}
	return b.Bytes()
}

// noNUL is the pattern that every string passed to a program must match.
const noNUL = `^[^\x00]*$`

// schemaOf returns the schema for type t, which is described as key. If nullable is set, null means
// "not given".
func schemaOf(t reflect.Type, key string, nullable bool) object {
	f := fieldOf(key)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var name string
	var o object
	switch {
	case t == resourcesType:
		return resourcesSchema(f, nullable)
	case t == disconnectType:
		return disconnectSchema(f, nullable)
	case t == hostCountType:
		return hostCountSchema(f, nullable)
	case t == durationType:
		name, o = "string", object{{"pattern", durationPattern}}
	case t.Kind() == reflect.String:
		name, o = "string", textSchema(f, nullable)
	case t.Kind() == reflect.Bool:
		name = "boolean"
	case t.Kind() == reflect.Int:
		name, o = "integer", numberSchema(f)
	case t.Kind() == reflect.Slice:
		name, o = "array", listSchema(t, key)
	case t.Kind() == reflect.Map:
		name, o = "object", mapSchema(t, key)
	case t == variableType:
		name, o = "object", structSchema(reflect.TypeFor[Source]())
	case t.Kind() == reflect.Struct:
		name, o = "object", structSchema(t)
	default:
		panic("spec: no schema for a " + t.String())
	}
	types := []string{name}
	if t == hostsType {
		types = append(types, "integer", "string") // just the count
		o = append(o, entry{"minimum", 1}, entry{"pattern", emptyOr(hostCountPattern, nullable)})
	}
	if t == shipType {
		types = append(types, "string") // just the directory
		o = append(o, entry{"pattern", noNUL})
	}
	if t == variableType {
		types = append(types, "string") // the value itself
		o = append(o, entry{"pattern", noNUL})
	}
	if nullable {
		types = append(types, "null")
	}
	head := object{{"type", types}}
	if len(types) == 1 {
		head = object{{"type", name}}
	}
	if f.doc != "" {
		head = append(head, entry{"description", f.doc})
	}
	if f.def != nil {
		head = append(head, entry{"default", f.def})
	}
	return append(head, o...)
}

func textSchema(f field, nullable bool) object {
	switch {
	case f.enum != nil:
		values := make([]any, 0, len(f.enum)+2)
		for _, v := range f.enum {
			values = append(values, v)
		}
		if nullable {
			values = append(values, "", nil) // both mean "not given"
		}
		return object{{"enum", values}}
	case f.syntax.pattern != "":
		return object{{"pattern", emptyOr(f.syntax.pattern, nullable)}}
	default:
		return object{{"pattern", noNUL}}
	}
}

// emptyOr extends a pattern so that it also matches the empty string, which Go's types cannot
// distinguish from a missing one.
func emptyOr(pattern string, empty bool) string {
	if !empty {
		return pattern
	}
	return "^$|" + pattern
}

func numberSchema(f field) object {
	var o object
	if f.least != nil {
		o = append(o, entry{"minimum", *f.least})
	}
	if f.most != nil {
		o = append(o, entry{"maximum", *f.most})
	}
	return o
}

func listSchema(t reflect.Type, key string) object {
	items := schemaOf(t.Elem(), key+"[]", false)
	var o object
	if fieldOf(key).filled {
		o = object{{"minItems", 1}}
	}
	if strings.HasSuffix(key, ".command") {
		program := append(object{}, items...)
		o = append(o, entry{"prefixItems", []object{append(program, entry{"minLength", 1})}})
	}
	return append(o, entry{"items", items})
}

func mapSchema(t reflect.Type, key string) object {
	// An empty override changes nothing.
	values := schemaOf(t.Elem(), key+".*", t.Elem() == overrideType)
	if t.Elem() == overrideType {
		return object{{"propertyNames", object{{"pattern", indexPattern}}}, {"additionalProperties", values}}
	}
	return object{
		{"propertyNames", object{{"pattern", `^[^=\x00]+$`}, {"not", object{{"pattern", "^" + reservedEnv}}}}},
		{"additionalProperties", values},
	}
}

func structSchema(t reflect.Type) object {
	var properties object
	required := []string{}
	for i := range t.NumField() {
		name := jsonName(t.Field(i))
		key := fieldKey(t, name)
		must := fieldOf(key).required
		if must {
			required = append(required, name)
		}
		properties = append(properties, entry{name, schemaOf(t.Field(i).Type, key, !must)})
	}
	o := object{{"properties", properties}}
	if len(required) > 0 {
		o = append(o, entry{"required", required})
	}
	if t == reflect.TypeFor[TaskGroup]() {
		o = append(o, entry{"not", object{
			{"description", "count and addresses exclude each other"},
			{"required", []string{"count", "addresses"}},
			{"properties", object{{"count", object{{"type", "integer"}}}, {"addresses", object{{"type", "array"}}}}},
		}})
	}
	return append(o, entry{"additionalProperties", false})
}

// object is a JSON object that preserves its order.
type object []entry

type entry struct {
	name  string
	value any
}

// MarshalJSON encodes the entries in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, e := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(e.name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(e.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
