package spec

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// Flag is the flag of a field of a [RunSpec].
type Flag struct {
	// Name is that of the flag, without dashes.
	Name string
	// Path names the field, as in a [Problem]: "stop.grace".
	Path string
	// Usage is its help. The name of the value is in backquotes.
	Usage string
	// Repeated reports whether the flag of a list is given once for each item.
	Repeated bool
	// Type is that of the field.
	Type reflect.Type

	index []int
}

// Flags lists the flags of the fields, in the order in which help shows them. The list is
// made once, and must not be changed.
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

// In returns the field of a spec, which can be set.
func (f Flag) In(s *RunSpec) reflect.Value { return reflect.ValueOf(s).Elem().FieldByIndex(f.index) }

// inRun returns where in a run spec the field is: one of its own, or of a struct that it
// has.
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
	panic("spec: " + f.of + " is no field of a run spec that has a flag")
}

// usageWithDefault names the default, too, but where the usage does so in words.
func (f field) usageWithDefault() string {
	if f.def == nil || f.def == false || strings.Contains(f.usage, "(default") {
		return f.usage
	}
	return f.usage + " (default " + f.defaultText() + ")"
}

// defaultText returns the default as a flag takes it.
func (f field) defaultText() string {
	text := fmt.Sprint(f.def)
	if reflect.ValueOf(f.def).Kind() == reflect.Slice {
		return strings.ReplaceAll(strings.Trim(text, "[]"), " ", ",")
	}
	return text
}
