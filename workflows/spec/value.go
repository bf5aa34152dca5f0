package spec

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Values that JSON cannot express are objects with one of these keys, in the values that tasks
// return and in the arguments and values of closures. The package for Python writes and reads
// them.
const (
	// NumberKey is the key of "NaN", "Infinity" or "-Infinity".
	NumberKey = "$clusterrun.number"
	// BytesKey is the key of bytes in base64.
	BytesKey = "$clusterrun.bytes"
)

// numbers turns the objects that stand for numbers into those numbers. No string of JSON can
// contain such an object: its quotes are escaped there.
var numbers = func() *strings.Replacer {
	var pairs []string
	for _, number := range []string{"NaN", "Infinity", "-Infinity"} {
		pairs = append(pairs, `{"`+NumberKey+`":"`+number+`"}`, number)
	}
	return strings.NewReplacer(pairs...)
}()

// ShownValue returns a value on one line, in which NaN and the infinities are bare. That is not
// JSON.
func ShownValue(value json.RawMessage) string {
	var compact bytes.Buffer
	if json.Compact(&compact, value) != nil {
		return string(value)
	}
	return numbers.Replace(compact.String())
}
