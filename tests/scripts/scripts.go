// Package scripts tests the pure machines: with scripts of events and their answers, and with
// random bytes.
package scripts

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Directive returns the answer to a script's directive.
type Directive func(t *testing.T, d *datadriven.TestData) string

// Run runs the scripts in testdata/scripts. Each starts with the directives returned by fresh.
// `go test -run Scripts -rewrite` rewrites the answers.
func Run(t *testing.T, fresh func() map[string]Directive) {
	t.Helper()
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		directives := fresh()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			answer, known := directives[d.Cmd]
			if !known {
				d.Fatalf(t, "no such directive")
			}
			return answer(t, d)
		})
	})
}

// Events returns a directive's lines, each followed by step's answer. Empty lines and lines that
// start with # are skipped.
func Events(t *testing.T, d *datadriven.TestData, step func(line string) (string, error)) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(d.Input) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		answer, err := step(line)
		if err != nil {
			d.Fatalf(t, "%s: %v", line, err)
		}
		fmt.Fprintf(&out, "> %s\n%s", line, answer)
	}
	return out.String()
}

// Bytes is a fuzzed machine's input.
type Bytes []byte

// Byte returns the next byte, or 0 if none is left.
func (b *Bytes) Byte() byte {
	if len(*b) == 0 {
		return 0
	}
	next := (*b)[0]
	*b = (*b)[1:]
	return next
}

// Fuzz fuzzes run with inputs no longer than most bytes.
func Fuzz(f *testing.F, most int, run func(t *testing.T, data Bytes)) {
	f.Helper()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > most {
			t.Skip("longer ones find nothing new, and slowly")
		}
		run(t, data)
	})
}

// JSON encodes a value as JSON.
func JSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
