package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// parseJSON reads one JSON document. It returns nil after a problem that
// leaves nothing to look at.
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
			Message: "something follows the end of the document: " + Quote(string(rest[:min(len(rest), 40)])),
			Remedy:  "give one JSON object only",
		})
		return nil
	}
	r := jsonReader{c: c, data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1}
	r.dec.UseNumber()
	n := r.value()
	return &n
}

const emptyRemedy = "a run spec has at least tasks and a command"

// jsonReader turns the tokens of a document that is known to be valid JSON
// into nodes.
type jsonReader struct {
	c    *checker
	data []byte
	dec  *json.Decoder
	at   int // offset behind the last token
	line int // line of the last token
}

func (r *jsonReader) token() json.Token {
	t, err := r.dec.Token()
	if err != nil {
		// The document was checked; running off its end is our own mistake.
		panic(fmt.Sprintf("spec: reading tokens of valid JSON: %v", err))
	}
	end := int(r.dec.InputOffset())
	raw := r.data[r.at:end]
	r.line += bytes.Count(raw, []byte("\n"))
	r.at = end
	if _, ok := t.(string); ok && hasLoneSurrogate(raw) {
		r.c.note(Problem{
			Line:    r.line,
			Message: fmt.Sprintf("the text %s holds half of a surrogate pair, which is no character", cut(string(bytes.TrimLeft(raw, ",: \t\r\n")))),
			Remedy:  `write both halves, such as "\ud83d\ude00", or the character itself`,
		})
	}
	return t
}

func (r *jsonReader) value() node { return r.valueOf(r.token()) }

func (r *jsonReader) valueOf(t json.Token) node {
	n := node{line: r.line}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			n.kind = kindObject
			for r.dec.More() {
				name := r.token().(string)
				m := member{name: name, line: r.line}
				m.value = r.value()
				n.members = append(n.members, m)
			}
		} else {
			n.kind = kindList
			for r.dec.More() {
				n.items = append(n.items, r.value())
			}
		}
		r.token()
	case string:
		n.kind, n.text = kindText, t
	case json.Number:
		n.kind, n.text = kindNumber, t.String()
	case bool:
		n.kind, n.text = kindBool, strconv.FormatBool(t)
	}
	return n
}

func syntaxProblem(data []byte, err error) Problem {
	at := len(data)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = int(syntax.Offset)
	}
	p := Problem{Line: lineAt(data, at), Message: "is not valid JSON: " + err.Error()}
	if p.Line > 0 {
		return p
	}
	p.Message += fmt.Sprintf(" (at character %d)", at)
	return p
}

// lineAt returns the line of an offset, or 0 where the document has one line only:
// then a line number says nothing.
func lineAt(data []byte, offset int) int {
	if !manyLines(data) {
		return 0
	}
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}

func manyLines(data []byte) bool { return bytes.Contains(bytes.TrimSpace(data), []byte("\n")) }

// hasLoneSurrogate reports whether a JSON text names half of a surrogate pair.
// encoding/json would silently put U+FFFD in its place, and the program would
// get another argument than the one that was written.
func hasLoneSurrogate(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++ // an escaped character, perhaps a backslash
			continue
		}
		switch u := escapedUnit(raw[i:]); {
		case u >= 0xd800 && u < 0xdc00:
			if low := escapedUnit(raw[i+6:]); low < 0xdc00 || low >= 0xe000 {
				return true
			}
			i += 11
		case u >= 0xdc00 && u < 0xe000:
			return true
		default:
			i += 5
		}
	}
	return false
}

// escapedUnit reads a leading \uXXXX; 0 when there is none.
func escapedUnit(raw []byte) uint64 {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0
	}
	u, err := strconv.ParseUint(string(raw[2:6]), 16, 32)
	if err != nil {
		return 0
	}
	return u
}
