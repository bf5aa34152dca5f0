package filelock

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held := func() bool {
		held := must.Get(IsHeld(path))(t)
		return held
	}
	assert.False(t, held(), "no file, no lock")

	_, err := TryExisting(path)
	require.ErrorIs(t, err, fs.ErrNotExist)

	one := must.Get(Try(path))(t)
	assert.True(t, held())
	_, err = Try(path)
	require.ErrorIs(t, err, ErrLocked)
	_, err = TryExisting(path)
	require.ErrorIs(t, err, ErrLocked)
	_, err = TryShared(path)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, one.Close())
	assert.False(t, held())

	one = must.Get(TryShared(path))(t)
	defer one.Close()
	two := must.Get(TryShared(path))(t)
	defer two.Close()
	assert.False(t, held(), "it is only shared")
	_, err = Try(path)
	require.ErrorIs(t, err, ErrLocked)
}

func TestTempDir(t *testing.T) {
	parent := t.TempDir()
	foreign := filepath.Join(parent, ".new-foreign")
	require.NoError(t, os.Mkdir(foreign, 0o700))
	other := filepath.Join(parent, "other")
	require.NoError(t, os.Mkdir(other, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(other, lockName), nil, 0o600))
	killed := filepath.Join(parent, ".new-killed")
	require.NoError(t, os.Mkdir(killed, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(killed, lockName), nil, 0o600))

	one, removeOne, err := TempDir(parent, ".new-")
	require.NoError(t, err)
	two, removeTwo, err := TempDir(parent, ".new-")
	require.NoError(t, err)
	assert.NotEqual(t, one, two)
	assert.DirExists(t, one, "it is in use")
	assert.NoDirExists(t, killed)
	assert.DirExists(t, foreign, "without a lock it may be new, or of somebody else")
	assert.DirExists(t, other)

	removeOne()
	assert.NoDirExists(t, one)
	assert.DirExists(t, two)
	removeTwo()
	_, _, err = TempDir(filepath.Join(parent, "none"), ".new-")
	require.ErrorIs(t, err, os.ErrNotExist)
}
