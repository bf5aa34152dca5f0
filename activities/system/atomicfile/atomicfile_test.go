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

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestWrite(t *testing.T) {
	for name, write := range map[string]func(string, []byte, fs.FileMode) error{"plain": Write, "synced": WriteSynced} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			require.NoError(t, os.WriteFile(path, []byte("an old text"), 0o600))
			require.NoError(t, write(path, []byte("new"), 0o644))
			assert.Equal(t, "new", must.Read(t, path))
			info := must.Get(os.Stat(path))(t)
			assert.Equal(t, fs.FileMode(0o644), info.Mode(), "whatever the umask")

			require.NoError(t, os.Mkdir(filepath.Join(dir, "directory"), 0o700))
			require.Error(t, write(filepath.Join(dir, "directory"), nil, 0o600))
			entries := must.Get(os.ReadDir(dir))(t)
			assert.Len(t, entries, 2, "nothing is left behind")
			require.ErrorIs(t, write(filepath.Join(dir, "none", "file"), nil, 0o600), fs.ErrNotExist)
		})
	}
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries := must.Get(os.ReadDir(dir))(t)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func writes(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

var errTorn = errors.New("torn")

func TestWriteNew(t *testing.T) {
	for name, write := range map[string]func(path string, write func(io.Writer) error) error{
		"as the file system can": WriteNew,
		"under a hidden name": func(path string, write func(io.Writer) error) error {
			f := must.Get(createHidden(path))(t)
			return f.become(path, write)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			require.ErrorIs(t, write(path, func(w io.Writer) error { return errors.Join(writes("half")(w), errTorn) }), errTorn)
			assert.Empty(t, names(t, dir), "no half of a file")

			require.NoError(t, write(path, func(w io.Writer) error {
				assert.NotContains(t, names(t, dir), "file", "it is there once it is whole")
				return writes("whole")(w)
			}))
			info := must.Get(os.Stat(path))(t)
			assert.Equal(t, fs.FileMode(0o600), info.Mode())
			require.ErrorIs(t, write(path, writes("another")), fs.ErrExist)

			// A file that another process creates during the write is kept.
			other := filepath.Join(dir, "other")
			require.ErrorIs(t, write(other, func(io.Writer) error { return os.WriteFile(other, []byte("theirs"), 0o600) }), fs.ErrExist)
			b := must.Get(os.ReadFile(other))(t)
			assert.Equal(t, "theirs", string(b))
			b = must.Get(os.ReadFile(path))(t)
			assert.Equal(t, "whole", string(b))
			assert.Equal(t, []string{"file", "other"}, names(t, dir))
		})
	}
	err := WriteNew(filepath.Join(t.TempDir(), "nosuch", "file"), writes("x"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.ErrorContains(t, err, "nosuch/file:", "the name that was given")
}

// A process that is killed while it writes a file leaves nothing: the file is unnamed until it is
// complete.
func TestNothingIsThereBeforeItIsWhole(t *testing.T) {
	dir := t.TempDir()
	if f, err := createUnnamed(dir); errors.Is(err, errNoUnnamed) {
		t.Skip("the file system has no files without names")
	} else {
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.NoError(t, WriteNew(filepath.Join(dir, "file"), func(w io.Writer) error {
		defer func() { assert.Empty(t, names(t, dir)) }()
		return writes("half")(w)
	}))
	assert.Equal(t, []string{"file"}, names(t, dir))
}
