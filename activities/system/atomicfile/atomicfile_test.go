package atomicfile

import (
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
			b := must.Get(os.ReadFile(path))(t)
			assert.Equal(t, "new", string(b))
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
