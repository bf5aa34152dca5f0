package spec

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Set sets a field to a value in YAML, in which a text needs no quotes. The path of a field has dots, as in "stop.grace". The error
// is an [*InvalidSpecError]; [RunSpec.Validate] finds values that do not fit the rest.
func (s *RunSpec) Set(path, value string) error {
	c := &checker{textOfAny: true}
	n := readDocument(c, []byte(cmp.Or(value, `""`)), parseYAML)
	if n == nil {
		return c.specError()
	}
	for _, name := range slices.Backward(strings.Split(path, ".")) {
		n = &node{kind: kindObject, members: []member{{name: name, value: *n}}}
	}
	c.fill("", "", n, reflect.ValueOf(s).Elem())
	return c.specError()
}
