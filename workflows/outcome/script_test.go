package outcome

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// TestScripts runs testdata: results of runs, in YAML, and what is said of them.
// `go test -run Scripts -rewrite` rewrites the answers.
//
// The directive `report [logs]` shows the headline and the lines. With logs, output is named by its
// path.
func TestScripts(t *testing.T) {
	scripts.Run(t, func() map[string]scripts.Directive {
		return map[string]scripts.Directive{"report": func(t *testing.T, d *datadriven.TestData) string {
			var document any
			require.NoError(t, yaml.Unmarshal([]byte(d.Input), &document), d.Pos)
			var r spec.RunResult
			decoder := json.NewDecoder(bytes.NewReader(must.Get(json.Marshal(document))(t)))
			decoder.DisallowUnknownFields()
			require.NoError(t, decoder.Decode(&r), d.Pos)
			if r.Message == "" {
				r.Message = Sentence(&r)
			}
			o := Options{Run: "iris"}
			if d.HasArg("logs") {
				o.Run = ""
			}
			lines := append([]string{Headline("iris", &r, strings.ToUpper)}, Lines(&r, o)...)
			return strings.Join(lines, "\n") + "\n"
		}}
	})
}
