package spec

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// golden compares a text with a file of testdata.
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

// Golden is golden for the tests outside the package.
var Golden = golden

// document is a file of the corpus in testdata.
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

// documents reads the corpus: "good" or "bad".
func documents(t testing.TB, kind string) []document {
	t.Helper()
	var list []document
	for _, pattern := range []string{"*.yaml", "*.json"} {
		paths, err := filepath.Glob(filepath.Join("testdata", kind, pattern))
		require.NoError(t, err)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			list = append(list, document{name: filepath.Base(path), path: path, data: data})
		}
	}
	require.NotEmpty(t, list)
	return list
}
