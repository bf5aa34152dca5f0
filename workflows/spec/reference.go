package spec

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

const referenceHead = `A run spec describes what to run: a cluster's tasks, each task's command, and
the rules that decide how the run ends. It is a YAML or JSON document:

    command: [python3, train.py]
    tasks:
      - {type: chief}
      - {type: worker, count: 3}

This page lists every field, as written in YAML. Write times like 3s, 90m or
1h30m. The flags of run, submit and validate override the file. A TensorFlow
cluster spec, such as {"worker": ["host:2222"]}, is accepted in place of a spec.
`

// referenceColumns is the maximum width of the reference.
const referenceColumns = 80

// Reference documents a run spec's fields.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	writeReference(&b, reflect.TypeFor[RunSpec](), "")
	return b.String()
}

func writeReference(b *strings.Builder, t reflect.Type, indent string) {
	for _, f := range fields {
		typ, name, _ := strings.Cut(f.of, ".")
		i, ok := fieldNamed(t, name)
		if typ != t.Name() || !ok {
			continue
		}
		fmt.Fprintf(b, "\n%s%s\n", indent, f.example)
		writeWrapped(b, f.doc, indent+"    ")
		writeWrapped(b, f.facts(), indent+"    ")
		if inner := structIn(t.Field(i).Type); inner != nil && (indent == "" || !ofRun(inner)) {
			writeReference(b, inner, indent+"    ")
		}
	}
}

// facts returns the reference text that follows a field's description.
func (f field) facts() string {
	var facts []string
	add := func(format string, args ...any) { facts = append(facts, fmt.Sprintf(format+".", args...)) }
	if f.required {
		add("Required")
	}
	if enum := slices.Concat(f.enum, fieldOf(f.of+"[]").enum); len(enum) > 0 {
		add("One of: %s", strings.Join(enum, ", "))
	}
	switch {
	case f.most != nil:
		add("From %d to %d", *f.least, *f.most)
	case f.least != nil:
		add("At least %d", *f.least)
	}
	if text := f.defaultText(); f.def != nil && !strings.Contains(f.doc, "Default") {
		if _, isText := f.def.(string); isText && strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) {
			text = Quote(text)
		}
		add("Default: %s", text)
	}
	var flags []string
	if f.flag != "" {
		flags = append(flags, "--"+f.flag)
	}
	if flags = append(flags, f.otherFlags...); len(flags) > 0 {
		add("Flag: %s", strings.Join(flags, ", "))
	}
	return strings.Join(facts, " ")
}

// structIn returns the struct type contained in type t, or nil.
func structIn(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	switch {
	case t == variableType:
		return reflect.TypeFor[Source]()
	case t.Kind() != reflect.Struct:
		return nil
	}
	return t
}

// ofRun reports whether a field of the run itself has type t, and thus documents it.
func ofRun(t reflect.Type) bool {
	run := reflect.TypeFor[RunSpec]()
	for i := range run.NumField() {
		if structIn(run.Field(i).Type) == t {
			return true
		}
	}
	return false
}

// writeWrapped writes text in lines of limited width.
func writeWrapped(b *strings.Builder, text, indent string) {
	for _, line := range shorten.Wrap(text, referenceColumns-len(indent)) {
		b.WriteString(indent + line + "\n")
	}
}
