package tasklog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func nested(deep int) string { return strings.Repeat("[", deep) + strings.Repeat("]", deep) }

func TestValue(t *testing.T) {
	for text, want := range map[string]string{
		` {"a": 1, "a": [2, "]["]}`: `{"a":1,"a":[2,"]["]}`, // the reader decides what a repeated name means
		`"\ud800\"[[["`:             `"\ud800\"[[["`,
		`1e400`:                     `1e400`,
		nested(maxDepth):            nested(maxDepth),
		"[" + strings.Repeat("[],", 2000) + "{}]": "[" + strings.Repeat("[],", 2000) + "{}]",
	} {
		got, err := Value([]byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, want, string(got))
	}
	for text, want := range map[string]string{
		"":                   "is not one JSON value: unexpected end of JSON input",
		"NaN":                "is not one JSON value: invalid character 'N'",
		"-Infinity":          "is not one JSON value: invalid character 'I'",
		"1 2":                "is not one JSON value: invalid character '2' after top-level value",
		"\"\xff\"":           "is not UTF-8",
		nested(maxDepth + 1): "has lists and objects nested to a depth of 501; the limit is 500",
		strings.Repeat(`{"a":`, 9999) + "1" + strings.Repeat("}", 9999): "a depth of 9999; the limit is 500",
		nested(10001): "exceeded max depth",
	} {
		_, err := Value([]byte(text))
		assert.ErrorContains(t, err, want, text[:min(len(text), 50)])
	}
}
