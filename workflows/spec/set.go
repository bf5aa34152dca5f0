package spec

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Set sets the field at a path such as "stop.grace" to a YAML value. Strings do not need quotes.
// The error is an [*InvalidSpecError]. [RunSpec.Validate] finds values that conflict with other
// fields.
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
