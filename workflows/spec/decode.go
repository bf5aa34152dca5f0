package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// MaxSpecBytes is an exclusive limit on the size of a run spec in bytes, both as a document and as
// stored JSON. It is well below 2 MiB, the payload size that a Temporal server refuses.
const MaxSpecBytes = 1 << 20

// Decode reads a run spec from JSON and validates it. It rejects unknown fields, duplicate keys,
// values of the wrong type, and anything after the object. Names are case-sensitive. null means
// "not given". The error is an [*InvalidSpecError] with the document's problems and those that
// [RunSpec.Validate] finds in the readable part of the document.
//
// Decode calls the functions in complete before it validates. Callers use them to apply flags, add
// a command to a TensorFlow cluster spec, or make paths absolute. At that point, parts of the
// document that could not be read have zero values.
//
// A TensorFlow cluster spec is accepted instead of a run spec; see [FromClusterSpec].
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
		c.malform("", root.line, "the document must be an object, not "+root.describe(), emptyRemedy)
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
	checkSpec(c, s)
	if err := c.specError(); err != nil {
		return nil, err
	}
	return s, nil
}

func readDocument(c *checker, data []byte, parse func(*checker, []byte) *node) *node {
	if len(data) >= MaxSpecBytes {
		c.note(Problem{
			Message: fmt.Sprintf("the document has %d bytes; a run spec must be smaller than %d bytes", len(data), MaxSpecBytes),
			Remedy:  "put large data into files",
		})
		return nil
	}
	// Check this first, because the decoders replace invalid UTF-8 with U+FFFD, so the program
	// would receive bytes that differ from those in the document.
	if at := invalidUTF8(data); at >= 0 {
		c.note(Problem{
			Line:    lineAt(data, at),
			Message: fmt.Sprintf("byte %d of the document (0x%02x) is not valid UTF-8", at, data[at]),
			Remedy:  "save the document as UTF-8; put other bytes into files",
		})
		return nil
	}
	if manyLines(data) {
		c.lines = map[string]int{}
	}
	return parse(c, data)
}

// invalidUTF8 returns the first invalid byte's offset, or -1.
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

// trimBOM drops the byte order mark that some editors write at the start of a file.
func trimBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\ufeff")) }

// parseJSON parses one JSON document. It returns nil if a problem makes the document unreadable.
func parseJSON(c *checker, data []byte) *node {
	dec := json.NewDecoder(bytes.NewReader(data))
	var first json.RawMessage
	switch err := dec.Decode(&first); {
	case errors.Is(err, io.EOF):
		c.note(Problem{Message: "the document is empty", Remedy: emptyRemedy})
		return nil
	case err != nil:
		c.note(syntaxProblem(data, err))
		return nil
	}
	if rest := bytes.TrimSpace(data[dec.InputOffset():]); len(rest) > 0 {
		c.note(Problem{
			Line:    lineAt(data, len(data)-len(rest)),
			Message: "the document continues after its end: " + Quote(string(rest[:min(len(rest), 40)])),
			Remedy:  "write a single JSON object",
		})
		return nil
	}
	r := jsonReader{c: c, data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1}
	r.dec.UseNumber()
	tree, err := r.value()
	if err != nil {
		c.note(syntaxProblem(data, err)) // unreachable, since the document was checked
		return nil
	}
	return c.nodeOf(tree)
}

const emptyRemedy = "a run spec requires at least tasks and a command"

// jsonReader parses a JSON document into YAML nodes. It preserves the order, duplicate keys, and
// the spelling of numbers.
type jsonReader struct {
	c    *checker
	data []byte
	dec  *json.Decoder
	at   int // offset after the last token
	line int // line of the last token
}

func (r *jsonReader) token() (json.Token, error) {
	t, err := r.dec.Token()
	end := int(r.dec.InputOffset())
	raw := r.data[r.at:end]
	r.line += bytes.Count(raw, []byte("\n"))
	r.at = end
	// encoding/json replaces an unpaired surrogate with U+FFFD, so the program would receive an
	// argument that differs from what was written.
	if text, ok := t.(string); ok && strings.ContainsRune(text, utf8.RuneError) && surrogate().Match(raw) {
		r.c.note(Problem{
			Line:    r.line,
			Message: fmt.Sprintf("the string %s contains half of a surrogate pair, which is not a character", cut(string(bytes.TrimLeft(raw, ",: \t\r\n")))),
			Remedy:  `write both halves, such as "\ud83d\ude00", or the character itself`,
		})
	}
	return t, err
}

var surrogate = lazyregexp.New(`\\u[dD][89a-fA-F]`)

func (r *jsonReader) value() (*yaml.Node, error) {
	t, err := r.token()
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.line}
	switch v := t.(type) {
	case json.Delim:
		if n.Kind = yaml.MappingNode; v == '[' {
			n.Kind = yaml.SequenceNode
		}
		for r.dec.More() {
			item, err := r.value()
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		_, err = r.token() // the bracket
	case string:
		n.Tag, n.Value = "!!str", v
	case json.Number:
		n.Tag, n.Value = "!!float", v.String() // even if YAML would treat it as a string
	case bool:
		n.Value = strconv.FormatBool(v)
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, err
}

func syntaxProblem(data []byte, err error) Problem {
	at := len(data)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = int(syntax.Offset)
	}
	p := Problem{Line: lineAt(data, at), Message: "is not valid JSON: " + err.Error()}
	if p.Line > 0 {
		return p
	}
	p.Message += fmt.Sprintf(" (at character %d)", at)
	return p
}

// lineAt returns the line at an offset, or 0 in a one-line document, where line numbers are
// useless.
func lineAt(data []byte, offset int) int {
	if !manyLines(data) {
		return 0
	}
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}

func manyLines(data []byte) bool { return bytes.Contains(bytes.TrimSpace(data), []byte("\n")) }

// DecodeDocument decodes a document that is not a spec into v, a pointer to a zero struct, as
// strictly as [DecodeYAML]. It returns all problems.
func DecodeDocument(data []byte, v any) []Problem {
	c := &checker{document: reflect.TypeOf(v).Elem()}
	if root := readDocument(c, trimBOM(data), parseYAML); root != nil {
		c.fill("", "", root, reflect.ValueOf(v).Elem())
	}
	return c.sorted()
}
