package spec

import (
	"bytes"
	"fmt"
	"reflect"
	"unicode/utf8"
)

// MaxSpecBytes bounds a run spec, as a document and as the JSON that is
// stored, in bytes: it must be smaller. It leaves room below the 2 MiB at
// which a Temporal server refuses a payload.
const MaxSpecBytes = 1 << 20

// Decode reads a run spec from JSON and validates it. It is strict: a field
// that does not exist, a key given twice and a value of the wrong type are
// problems, names are case-sensitive, and anything behind the object is
// refused. null counts as not given. The error is an [*InvalidSpecError] with
// all problems: those of the document, and those [RunSpec.Validate] finds in
// what could be read.
//
// The functions in complete run on what was read before it is validated. A
// caller that knows better than the document uses them: flags that replace
// fields, the command for a TensorFlow cluster spec, a current directory that
// makes relative ones absolute. Where the document was no good, the spec they
// see has zero values.
//
// TensorFlow's cluster spec is accepted in place of a run spec; see
// [FromClusterSpec].
func Decode(data []byte, complete ...func(*RunSpec)) (*RunSpec, error) {
	return decode(data, parseJSON, complete)
}

func decode(data []byte, parse func(*checker, []byte) *node, complete []func(*RunSpec)) (*RunSpec, error) {
	c := &checker{}
	root := readDocument(c, trimBOM(data), parse)
	if root == nil {
		return nil, c.specError()
	}
	if root.kind != kindObject {
		c.malform("", root.line, "the document must be an object, is "+root.describe(), emptyRemedy)
		return nil, c.specError()
	}
	s := &RunSpec{}
	if isClusterSpec(root) {
		c.readClusterSpec(root, s)
	} else {
		c.fill("", "", root, reflect.ValueOf(s).Elem())
	}
	for _, f := range complete {
		f(s)
	}
	c.checkSpec(s)
	if err := c.specError(); err != nil {
		return nil, err
	}
	return s, nil
}

func readDocument(c *checker, data []byte, parse func(*checker, []byte) *node) *node {
	if len(data) >= MaxSpecBytes {
		c.note(Problem{
			Message: fmt.Sprintf("the document has %d bytes; a run spec has less than %d", len(data), MaxSpecBytes),
			Remedy:  "pass large data in files",
		})
		return nil
	}
	// Before anything else: the decoders put U+FFFD where they find no UTF-8,
	// and the program would get other bytes than those in the document.
	if at := invalidUTF8(data); at >= 0 {
		c.note(Problem{
			Line:    lineAt(data, at),
			Message: fmt.Sprintf("byte %d of the document (0x%02x) is not valid UTF-8", at, data[at]),
			Remedy:  "save it as UTF-8; pass other bytes in files",
		})
		return nil
	}
	if manyLines(data) {
		c.lines = map[string]int{}
	}
	return parse(c, data)
}

// invalidUTF8 returns the offset of the first byte that is no UTF-8, or -1.
func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

// trimBOM drops the mark that some editors put in front of UTF-8.
func trimBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }
