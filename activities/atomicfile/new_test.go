package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWriteNew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	text := func(text string) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}
	}
	names := func() (names []string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	torn := errors.New("torn")
	require.ErrorIs(t, WriteNew(path, func(w io.Writer) error { return errors.Join(text("half")(w), torn) }), torn)
	assert.Empty(t, names(), "no half of a file")

	require.NoError(t, WriteNew(path, func(w io.Writer) error {
		assert.NotContains(t, names(), "file", "it is there once it is whole")
		return text("whole")(w)
	}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())
	require.ErrorIs(t, WriteNew(path, text("another")), fs.ErrExist)

	// One that somebody else makes meanwhile stays.
	other := filepath.Join(dir, "other")
	require.ErrorIs(t, WriteNew(other, func(io.Writer) error { return os.WriteFile(other, []byte("theirs"), 0o600) }), fs.ErrExist)
	b, err := os.ReadFile(other)
	require.NoError(t, err)
	assert.Equal(t, "theirs", string(b))
	assert.Equal(t, []string{"file", "other"}, names())
}
