package spec

import "reflect"

// DecodeDocument reads a document of another kind than a spec into v, which is a pointer to a
// struct with the zero value, as strictly as [DecodeYAML] reads a spec. It returns everything
// that does not fit.
func DecodeDocument(data []byte, v any) []Problem {
	c := &checker{document: reflect.TypeOf(v).Elem()}
	if root := readDocument(c, trimBOM(data), parseYAML); root != nil {
		c.fill("", "", root, reflect.ValueOf(v).Elem())
	}
	return c.sorted()
}
