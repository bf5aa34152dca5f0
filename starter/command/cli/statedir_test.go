package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/hostuser"
)

// If HOME is missing or does not exist, the home in the password file is used.
func TestTheStateDirectoryWithoutAHome(t *testing.T) {
	for _, name := range []string{"CLUSTERRUN_STATE_DIR", "XDG_STATE_HOME", "HOME"} {
		t.Setenv(name, "")
	}
	inPasswd := stateIn(hostuser.Home(t.Context())) // empty for a user without an entry
	for _, home := range []string{"", "relative", "/nonexistent", "/dev/null"} {
		t.Setenv("HOME", home)
		assert.Equal(t, inPasswd, defaultStateDir(), "HOME=%s", home)
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	assert.Equal(t, filepath.Join(home, ".local/state/clusterrun"), defaultStateDir())
	t.Setenv("XDG_STATE_HOME", "/dev/null/state")
	assert.Equal(t, filepath.Join(home, ".local/state/clusterrun"), defaultStateDir(), "no directory can be there")
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "new"))
	assert.Equal(t, filepath.Join(home, "new", "clusterrun"), defaultStateDir())
}

func TestTheStateOfAUserWithoutAHome(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var a App
	require.NoError(t, keepTemporarily(&a))
	assert.Contains(t, a.temporary, a.Global.StateDir+", and may not last")
	parent := filepath.Dir(a.Global.StateDir)
	info, err := os.Stat(parent)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	require.NoError(t, os.Remove(parent))
	require.NoError(t, os.Symlink(t.TempDir(), parent))
	require.ErrorContains(t, keepTemporarily(&a), "--state-dir", "another user may have put it there")
}
