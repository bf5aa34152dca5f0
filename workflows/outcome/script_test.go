package outcome

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// TestScripts runs testdata: results of runs in YAML, with the reports. `go test -run Scripts
// -rewrite` rewrites the reports.
//
// The directive `report [logs]` shows a result's headline and lines. With logs, output is
// identified by its path. `facts` shows a status's facts, and marks facts that are new since the
// last status with +.
func TestScripts(t *testing.T) {
	scripts.Run(t, func() map[string]scripts.Directive {
		before := map[string]bool{}
		return map[string]scripts.Directive{"report": func(t *testing.T, d *datadriven.TestData) string {
			var r spec.RunResult
			read(t, d, &r)
			if r.Message == "" {
				r.Message = Sentence(&r)
			}
			o := Options{Run: "iris"}
			if d.HasArg("logs") {
				o.Run = ""
			}
			lines := append([]string{Headline("iris", &r, strings.ToUpper)}, Lines(&r, o)...)
			return strings.Join(lines, "\n") + "\n"
		}, "facts": func(t *testing.T, d *datadriven.TestData) string {
			s := Status{RunID: "iris", Queue: "clusterrun", Open: true}
			read(t, d, &s)
			facts := Facts(&s, time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC))
			fresh := News(facts, func(mark string) bool { return before[mark] })
			var b strings.Builder
			for _, f := range facts {
				isNew := slices.ContainsFunc(fresh, func(o Fact) bool { return o.Kind == f.Kind && o.Text == f.Text })
				fmt.Fprintf(&b, "%s %s: %s\n", map[bool]string{true: "+", false: " "}[isNew], f.Severity, f)
				for _, item := range f.Items {
					assert.NotContains(t, f.Text, item, "%s: the text goes on with its items", f.Kind)
				}
				assert.Contains(t, Kinds, f.Kind)
			}
			clear(before)
			for _, f := range facts {
				for _, mark := range f.Marks() {
					before[mark] = true
				}
			}
			return b.String()
		}}
	})
}

// read decodes a directive's YAML.
func read(t *testing.T, d *datadriven.TestData, v any) {
	var document any
	require.NoError(t, yaml.Unmarshal([]byte(d.Input), &document), d.Pos)
	decoder := json.NewDecoder(bytes.NewReader(must.Get(json.Marshal(document))(t)))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(v), d.Pos)
}
