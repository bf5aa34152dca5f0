package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// DecodeYAML is [Decode] for a spec in YAML, or in JSON: input that starts with a brace and is
// valid JSON is parsed as JSON. It handles what JSON lacks: it follows anchors, aliases and merge
// keys, accepts numbers as keys (`overrides: {1: …}`), and treats an empty value as not given. It
// is meant for specs that people write; workflows receive JSON.
func DecodeYAML(data []byte, complete ...func(*RunSpec)) (*RunSpec, error) {
	if text := bytes.TrimSpace(trimBOM(data)); bytes.HasPrefix(text, []byte("{")) && json.Valid(text) {
		return Decode(data, complete...)
	}
	return decode(data, parseYAML, complete)
}

// parseYAML parses one YAML document. It returns nil if a problem makes the document unreadable.
func parseYAML(c *checker, data []byte) *node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		c.note(Problem{Message: "the document is empty", Remedy: emptyRemedy})
		return nil
	case err != nil:
		c.note(yamlProblem(data, err))
		return nil
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		c.note(yamlProblem(data, err))
		return nil
	default:
		c.note(Problem{Line: second.Line, Message: "a second document follows", Remedy: "write a single document"})
		return nil
	}
	if len(doc.Content) == 0 {
		c.note(Problem{Message: "the document is empty", Remedy: emptyRemedy})
		return nil
	}
	return c.nodeOf(doc.Content[0])
}

// nodeOf converts a document to a tree, or returns nil if a problem makes it unreadable.
func (c *checker) nodeOf(tree *yaml.Node) *node {
	r := yamlReader{c: c}
	n := r.value(tree, 0)
	if r.tooMuch {
		c.note(Problem{
			Message: "the document is nested too deeply, or its aliases expand too far or contain themselves",
			Remedy:  "replace the aliases by what they stand for",
		})
		return nil
	}
	return &n
}

var yamlErrorLine = lazyregexp.New(`^line (\d+): `)

// yamlProblem extracts the line number from the parser's message.
func yamlProblem(data []byte, err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	p := Problem{}
	if m := yamlErrorLine().FindStringSubmatch(text); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	p.Message = "invalid YAML: " + text
	if tabIndent().Match(data) {
		p.Remedy = "indent with spaces; YAML does not allow tabs"
	}
	return p
}

var tabIndent = lazyregexp.New(`(?m)^ *\t`)

// Limits of the expanded document. With nested aliases, ten lines can contain a billion values.
const (
	maxYAMLDepth = 64
	maxYAMLNodes = 1 << 19
)

type yamlReader struct {
	c       *checker
	nodes   int
	tooMuch bool
}

func (r *yamlReader) value(y *yaml.Node, depth int) node {
	r.nodes++
	if r.nodes > maxYAMLNodes || depth > maxYAMLDepth {
		r.tooMuch = true
	}
	if r.tooMuch {
		return node{}
	}
	n := node{line: y.Line}
	switch y.Kind {
	case yaml.AliasNode:
		n = r.value(y.Alias, depth+1)
	case yaml.MappingNode:
		n.kind = kindObject
		n.members = r.members(y, depth)
	case yaml.SequenceNode:
		n.kind = kindList
		for _, item := range y.Content {
			n.items = append(n.items, r.value(item, depth+1))
		}
	default:
		n.kind, n.text = r.scalar(y), y.Value
	}
	return n
}

func (r *yamlReader) scalar(y *yaml.Node) kind {
	switch tag := y.ShortTag(); tag {
	case "!!null":
		return kindNull
	case "!!bool":
		return kindBool
	case "!!int", "!!float":
		return kindNumber
	case "!!str", "!!timestamp": // a bare date is a string
		return kindText
	default:
		r.c.note(Problem{
			Line:    y.Line,
			Message: fmt.Sprintf("the value %s has the unknown tag %s", Quote(y.Value), Quote(tag)),
			Remedy:  "write a plain value",
		})
		return kindText
	}
}

// members reads a mapping. A merge key's keys come last, without those that the mapping
// overrides.
func (r *yamlReader) members(y *yaml.Node, depth int) []member {
	var members, merged []member
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := y.Content[i], y.Content[i+1]
		switch {
		case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
			merged = append(merged, r.merge(value, depth)...)
		case key.Kind == yaml.AliasNode && key.Alias.Kind == yaml.ScalarNode:
			members = append(members, member{name: key.Alias.Value, line: key.Line, value: r.value(value, depth+1)})
		case key.Kind == yaml.ScalarNode && key.ShortTag() != "!!null":
			members = append(members, member{name: key.Value, line: key.Line, value: r.value(value, depth+1)})
		default:
			r.c.note(Problem{Line: key.Line, Message: "a key is a list, an object or empty", Remedy: "use a string as the key"})
		}
		if r.tooMuch {
			return nil
		}
	}
	if len(merged) == 0 {
		return members
	}
	own := map[string]bool{}
	for _, m := range members {
		own[m.name] = true
	}
	for _, m := range merged {
		if !own[m.name] {
			own[m.name] = true
			members = append(members, m)
		}
	}
	return members
}

func (r *yamlReader) merge(y *yaml.Node, depth int) []member {
	n := r.value(y, depth+1)
	switch n.kind {
	case kindObject:
		return n.members
	case kindList:
		var members []member
		for _, item := range n.items {
			members = append(members, item.members...)
		}
		return members
	default:
		if !r.tooMuch {
			r.c.note(Problem{Line: y.Line, Message: "<<: must be an alias of an object, not " + n.describe(), Remedy: "write <<: *name"})
		}
		return nil
	}
}

// YAML formats the spec for people: fields in the order of [RunSpec], short lists on one line,
// multi-line scripts as blocks. [DecodeYAML] parses it.
func (s *RunSpec) YAML() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	r := jsonReader{c: &checker{}, data: text, dec: json.NewDecoder(bytes.NewReader(text))}
	r.dec.UseNumber()
	n, err := r.value()
	if err != nil {
		return nil, err
	}
	style(n)
	var out bytes.Buffer
	w := yaml.NewEncoder(&out)
	w.SetIndent(2)
	if err := w.Encode(n); err != nil {
		return nil, err
	}
	return out.Bytes(), w.Close()
}

// shortList is the maximum length of a list on one line, in bytes.
const shortList = 72

// style formats a tree for people.
func style(n *yaml.Node) {
	length, flat := 0, n.Kind == yaml.SequenceNode
	for _, item := range n.Content {
		style(item)
		length += len(item.Value) + len(", ")
		flat = flat && item.Kind == yaml.ScalarNode && !strings.Contains(item.Value, "\n")
	}
	switch {
	case n.Tag == "!!float":
		n.Tag = "" // as written
	case n.Tag == "!!str" && !literal(n.Value):
		// Quotes preserve characters such as \r that plain strings and blocks cannot contain.
		n.Style = yaml.DoubleQuotedStyle
	case flat && length <= shortList, len(n.Content) == 0 && n.Kind != yaml.ScalarNode:
		n.Style = yaml.FlowStyle
	}
}

// literal reports whether a string keeps its meaning without quotes, as a word or as a block of
// lines. The emitter quotes words that would be a number, a boolean or null.
func literal(text string) bool {
	for _, r := range text {
		if r != '\n' && (r < ' ' || r > '~' && r < 0xa1 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffd) {
			return false
		}
	}
	switch strings.ToLower(text) {
	case "y", "yes", "on", "n", "no", "off":
		return false // a boolean to other YAML parsers
	}
	return strings.TrimSpace(text) != "" && text[0] != ' ' && text[0] != '\n' && !strings.Contains(text, " \n")
}
