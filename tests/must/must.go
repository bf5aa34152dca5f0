// Package must ends a test at an error that it does not expect.
package must

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Get returns a function for the value of a call, which ends the test if the call returned an
// error: must.Get(os.ReadFile(path))(t).
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// JSON returns the value of a JSON text.
func JSON[T any, Text ~string | ~[]byte](t testing.TB, text Text) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(text), &v), "%s", text)
	return v
}

// Read returns the text of a file, whose path is joined.
func Read(t testing.TB, path ...string) string {
	t.Helper()
	return string(Get(os.ReadFile(filepath.Join(path...)))(t))
}
