// Package must fails a test on an unexpected error.
package must

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Get returns a function for a call's value, which fails the test if the call returned an error:
// must.Get(os.ReadFile(path))(t).
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// JSON decodes a JSON string.
func JSON[T any, Text ~string | ~[]byte](t testing.TB, text Text) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(text), &v), "%s", text)
	return v
}

// Read returns the content of the file at the joined path.
func Read(t testing.TB, path ...string) string {
	t.Helper()
	return string(Get(os.ReadFile(filepath.Join(path...)))(t))
}
