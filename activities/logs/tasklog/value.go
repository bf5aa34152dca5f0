package tasklog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// maxDepth limits the nesting of lists and objects in a value. Most JSON readers accept about 1,000
// levels, and Go's 10,000. A more deeply nested value would make the result of the whole run
// unreadable.
const maxDepth = 500

// Value compacts and returns the single JSON value in text, which is a task's return value.
func Value(text []byte) (json.RawMessage, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, fmt.Errorf("is not one JSON value: %w", err)
	}
	if !utf8.Valid(text) {
		return nil, errors.New("is not UTF-8")
	}
	if deep := depth(compact.Bytes()); deep > maxDepth {
		return nil, fmt.Errorf("has lists and objects nested to a depth of %d; the limit is %d", deep, maxDepth)
	}
	return compact.Bytes(), nil
}

// bare lists the numbers that are not valid JSON. The signed form must precede the unsigned one.
var bare = []string{"NaN", "-Infinity", "Infinity"}

// expressed replaces bare numbers by the objects that represent them; see [spec.NumberKey].
func expressed(text []byte) []byte {
	var out []byte
	done, inText := 0, false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case inText && b == '\\':
			i++
		case b == '"':
			inText = !inText
		case inText:
		case b == 'N' || b == '-' || b == 'I':
			for _, number := range bare {
				if bytes.HasPrefix(text[i:], []byte(number)) {
					out = fmt.Appendf(append(out, text[done:i]...), "{%q:%q}", spec.NumberKey, number)
					i += len(number) - 1
					done = i + 1
					break
				}
			}
		}
	}
	return append(out, text[done:]...)
}

// depth returns the nesting depth of a valid JSON value.
func depth(value []byte) (deepest int) {
	now, inText := 0, false
	for i := 0; i < len(value); i++ {
		switch b := value[i]; {
		case inText && b == '\\':
			i++
		case b == '"':
			inText = !inText
		case inText:
		case b == '[' || b == '{':
			now++
			deepest = max(deepest, now)
		case b == ']' || b == '}':
			now--
		}
	}
	return deepest
}
