package spec

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// field describes a field of a spec, except for its Go type.
type field struct {
	// of is the Go type's name, a dot, and the field's JSON name. "[]" stands for list items and
	// ".*" for map values.
	of string
	// doc describes the field.
	doc string
	// example shows the field in YAML.
	example string
	// remedy replaces the default remedy for a value of the wrong type.
	remedy string
	// def is the default, or nil.
	def any
	// A required field must be given. A filled list, if given, must not be empty.
	required, filled bool
	// enum lists the allowed values.
	enum []string
	// syntax is a further condition on the value.
	syntax syntax
	// least and most limit a number, and bounds is the remedy for a number outside these limits.
	least, most *int
	bounds      string
	// from is the minimum duration.
	from lowest
	// flag is the name of the command-line flag, without dashes. usage is its help in pflag's
	// format, with the value's name in backquotes. The default is appended to it.
	flag, usage string
	// otherFlags lists further flags that set the field.
	otherFlags []string
	// repeated reports whether a list's flag is repeated for each item, instead of given once with
	// commas.
	repeated bool
}

const (
	envRemedy        = `write names and values: {A: "1"}`
	resourcesRemedy  = "write auto, or a list such as [0, 1, 2, 3]"
	cpusRemedy       = `write auto, or a list such as [0, 1, 2, 3] or "0-3,8"`
	disconnectRemedy = "write keep, {stop_after: 2m}, or {stop_after: 15s, outage: 10m}"
	hostCountRemedy  = `write a number such as 4, or a range such as "2:4"`
	durationRemedy   = `for example, "3s", "90m" or "1h30m"`
)

// fieldOf returns the table's entry for key, or an empty entry.
func fieldOf(key string) field { return fieldsByKey()[key] }

var fieldsByKey = sync.OnceValue(func() map[string]field {
	m := make(map[string]field, len(fields))
	for _, f := range fields {
		m[f.of] = f
	}
	return m
})

// structTitle returns the name of a spec type for use in a sentence.
func structTitle(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[RunSpec]():
		return "a run spec"
	case reflect.TypeFor[TaskGroup]():
		return "a task group"
	case reflect.TypeFor[Override]():
		return "an override"
	case reflect.TypeFor[Source]():
		return "an environment variable's value"
	case reflect.TypeFor[GroupLogs]():
		return "a task group's logs"
	case reflect.TypeFor[StopTogether]():
		return "stop_together"
	default:
		return strings.ToLower(t.Name())
	}
}

// fieldKey returns the field's key in the table.
func fieldKey(t reflect.Type, name string) string { return t.Name() + "." + name }

// jsonName returns the field's JSON name.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func fieldNamed(t reflect.Type, name string) (index int, ok bool) {
	for i := range t.NumField() {
		if jsonName(t.Field(i)) == name {
			return i, true
		}
	}
	return 0, false
}

func fieldNames(t reflect.Type) []string {
	var list []string
	for i := range t.NumField() {
		list = append(list, jsonName(t.Field(i)))
	}
	return list
}

// placeOf returns the path, such as "stop.grace", of the field with the given name, for a message
// about a misplaced field.
func placeOf(name string) string { return placeIn(reflect.TypeFor[RunSpec](), "", name) }

func placeIn(t reflect.Type, path, name string) string {
	if _, ok := fieldNamed(t, name); ok {
		return path + name
	}
	for i := range t.NumField() {
		f := t.Field(i)
		step, inner := path+jsonName(f), f.Type
		switch inner.Kind() {
		case reflect.Slice:
			step, inner = step+"[]", inner.Elem()
		case reflect.Map:
			step, inner = step+".N", inner.Elem()
		}
		if inner.Kind() != reflect.Struct {
			continue
		}
		if place := placeIn(inner, step+".", name); place != "" {
			return place
		}
	}
	return ""
}

// names converts the values of an enumeration to strings.
func names[T ~string](values []T) []string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = string(v)
	}
	return list
}

// Flag is the command-line flag of a [RunSpec] field.
type Flag struct {
	// Name is the flag's name, without dashes.
	Name string
	// Path is the field's path, as in a [Problem]: "stop.grace".
	Path string
	// Usage is the flag's help, with the value's name in backquotes.
	Usage string
	// Repeated reports whether a list's flag is given once per item.
	Repeated bool
	// Type is the field's type.
	Type reflect.Type

	index []int
}

// Flags lists the flags in the order of the help. Callers must not modify the list, which is
// built once.
func Flags() []Flag { return flags() }

var flags = sync.OnceValue(func() (list []Flag) {
	for _, f := range fields {
		if f.flag != "" {
			path, index := f.inRun()
			t := reflect.TypeFor[RunSpec]().FieldByIndex(index).Type
			list = append(list, Flag{f.flag, path, f.usageWithDefault(), f.repeated, t, index})
		}
	}
	return list
})

// In returns the field of s as a settable value.
func (f Flag) In(s *RunSpec) reflect.Value { return reflect.ValueOf(s).Elem().FieldByIndex(f.index) }

// inRun returns the field's path and index in a run spec, whether it is in the spec itself or in a
// nested struct.
func (f field) inRun() (path string, index []int) {
	run := reflect.TypeFor[RunSpec]()
	typ, name, _ := strings.Cut(f.of, ".")
	if i, ok := fieldNamed(run, name); ok && typ == run.Name() {
		return name, []int{i}
	}
	for i := range run.NumField() {
		outer := run.Field(i)
		if outer.Type.Kind() == reflect.Struct && outer.Type.Name() == typ {
			inner, _ := fieldNamed(outer.Type, name)
			return jsonName(outer) + "." + name, []int{i, inner}
		}
	}
	panic("spec: " + f.of + " is not a field of a run spec that has a flag")
}

// usageWithDefault returns the usage with the default appended, unless it already mentions one.
func (f field) usageWithDefault() string {
	if f.def == nil || f.def == false || strings.Contains(f.usage, "(default") {
		return f.usage
	}
	return f.usage + " (default " + f.defaultText() + ")"
}

// defaultText returns the default in the flag's syntax.
func (f field) defaultText() string {
	text := fmt.Sprint(f.def)
	if reflect.ValueOf(f.def).Kind() == reflect.Slice {
		return strings.ReplaceAll(strings.Trim(text, "[]"), " ", ",")
	}
	return text
}
