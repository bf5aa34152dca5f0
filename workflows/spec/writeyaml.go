package spec

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML returns the spec as a person would write it: the fields in the order of [RunSpec], short
// lists in one line, scripts of several lines as blocks. [DecodeYAML] reads it back.
func (s *RunSpec) YAML() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	n, err := yamlOf(d)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := yaml.NewEncoder(&out)
	w.SetIndent(2)
	if err := w.Encode(n); err != nil {
		return nil, err
	}
	return out.Bytes(), w.Close()
}

// yamlOf returns the next value of a JSON document, which keeps the order of its members.
func yamlOf(d *json.Decoder) (*yaml.Node, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch v := t.(type) {
	case json.Delim:
		if n.Kind = yaml.MappingNode; v == '[' {
			n.Kind = yaml.SequenceNode
		}
		for d.More() {
			item, err := yamlOf(d)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		_, err = d.Token() // the bracket
	case string:
		n.Tag, n.Value = "!!str", v
	default:
		err = n.Encode(v)
		if number, ok := v.(json.Number); ok {
			n.SetString(number.String())
			n.Tag = ""
		}
	}
	n.Style = styleOf(n)
	return n, err
}

// shortList is how many bytes the items of a list have in one line.
const shortList = 72

func styleOf(n *yaml.Node) yaml.Style {
	length, flat := 0, n.Kind == yaml.SequenceNode
	for _, item := range n.Content {
		length += len(item.Value) + len(", ")
		flat = flat && item.Kind == yaml.ScalarNode && !strings.Contains(item.Value, "\n")
	}
	switch {
	case n.Tag == "!!str" && !literal(n.Value):
		// Quotes keep what no plain text and no block can have, such as \r.
		return yaml.DoubleQuotedStyle
	case flat && length <= shortList, len(n.Content) == 0 && n.Kind != yaml.ScalarNode:
		return yaml.FlowStyle
	}
	return 0
}

// literal reports whether a text means the same without quotes: as a word, or as a block of
// lines. The emitter quotes those words that would be a number, a truth or nothing.
func literal(text string) bool {
	for _, r := range text {
		if r != '\n' && (r < ' ' || r > '~' && r < 0xa1 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffd) {
			return false
		}
	}
	switch strings.ToLower(text) {
	case "y", "yes", "on", "n", "no", "off":
		return false // a truth to other readers of YAML
	}
	return strings.TrimSpace(text) != "" && text[0] != ' ' && text[0] != '\n' && !strings.Contains(text, " \n")
}
