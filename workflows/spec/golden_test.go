package spec

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// golden compares text with a file in testdata.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to make it")
	require.Equal(t, string(want), got, "if this change is meant, run the test with -update")
}

// Golden exports golden to tests outside the package.
var Golden = golden

// document is a corpus file in testdata.
type document struct {
	name string // file name
	path string
	data []byte
}

func (d document) decode() (*RunSpec, error) {
	if strings.HasSuffix(d.name, ".yaml") {
		return DecodeYAML(d.data)
	}
	return Decode(d.data)
}

// documents reads the "good" or the "bad" corpus.
func documents(t testing.TB, kind string) []document {
	t.Helper()
	var list []document
	for _, pattern := range []string{"*.yaml", "*.json"} {
		paths := must.Get(filepath.Glob(filepath.Join("testdata", kind, pattern)))(t)
		for _, path := range paths {
			data := must.Get(os.ReadFile(path))(t)
			list = append(list, document{name: filepath.Base(path), path: path, data: data})
		}
	}
	require.NotEmpty(t, list)
	return list
}

func TestGoodSpecsDecode(t *testing.T) {
	for _, d := range documents(t, "good") {
		t.Run(d.name, func(t *testing.T) {
			s := must.Get(d.decode())(t)
			requireStable(t, s)
			requireStable(t, s.WithDefaults())
		})
	}
}

// requireStable fails the test if the spec changes when it is written and read back, strictly or
// not, as on the way from the starter to the workflow.
func requireStable(t testing.TB, s *RunSpec) {
	t.Helper()
	data := must.Get(json.Marshal(s))(t)
	again, err := Decode(data)
	require.NoError(t, err, "%s", data)
	require.JSONEq(t, toJSON(t, s.WithDefaults()), toJSON(t, again.WithDefaults()))
	require.Equal(t, s.TaskList(), again.TaskList(), "%s", data)
	twice := must.Get(json.Marshal(again))(t)
	require.Equal(t, string(data), string(twice))
	lenient := must.JSON[RunSpec](t, data)
	require.Equal(t, again.WithDefaults(), lenient.WithDefaults())
	written := must.Get(s.YAML())(t)
	fromYAML, err := DecodeYAML(written)
	require.NoError(t, err, "%s", written)
	data = must.Get(json.Marshal(fromYAML))(t)
	require.Equal(t, string(twice), string(data), "%s", written)
}

// Specs written as YAML are easy to read.
func TestYAML(t *testing.T) {
	for want, s := range map[string]*RunSpec{
		`name: iris
command: [python3, train.py, --epochs, "3"]
tasks:
  - type: worker
    count: 2
env:
  A: "yes"
  B:
    from_env: B
  C: "tab\t, \x7F and \r"
  D: ""
  E: "null"
`: {
			Name: "iris", Command: []string{"python3", "train.py", "--epochs", "3"}, Tasks: []TaskGroup{{Type: "worker", Count: new(2)}},
			Env: Env{"A": {Value: "yes"}, "B": {From: Source{FromEnv: "B"}}, "C": {Value: "tab\t, \x7f and \r"}, "D": {}, "E": {Value: "null"}},
		},
		`command:
  - bash
  - -c
  - |
    cd src
    make
tasks: []
`: {Command: []string{"bash", "-c", "cd src\nmake\n"}, Tasks: []TaskGroup{}},
	} {
		got := must.Get(s.YAML())(t)
		require.Equal(t, want, string(got))
	}
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	data := must.Get(json.Marshal(v))(t)
	return string(data)
}

// Each golden file lists a document's problems as people see them.
func TestBadSpecsAreRefused(t *testing.T) {
	for _, d := range documents(t, "bad") {
		t.Run(d.name, func(t *testing.T) {
			s, err := d.decode()
			require.Error(t, err)
			require.Nil(t, s)
			var invalid *InvalidSpecError
			require.ErrorAs(t, err, &invalid)
			golden(t, d.path+".golden", err.Error()+"\n")
			for i := range 20 {
				_, err2 := d.decode()
				require.Equal(t, err, err2, "time %d", i)
			}
		})
	}
}
