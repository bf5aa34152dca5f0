package filelock

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held := func() bool {
		held, err := IsHeld(path)
		require.NoError(t, err)
		return held
	}
	assert.False(t, held(), "no file, no lock")

	_, err := TryExisting(path)
	require.ErrorIs(t, err, fs.ErrNotExist)

	one, err := Try(path)
	require.NoError(t, err)
	assert.True(t, held())
	_, err = Try(path)
	require.ErrorIs(t, err, ErrLocked)
	_, err = TryExisting(path)
	require.ErrorIs(t, err, ErrLocked)
	_, err = TryShared(path)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, one.Close())
	assert.False(t, held())

	one, err = TryShared(path)
	require.NoError(t, err)
	defer one.Close()
	two, err := TryShared(path)
	require.NoError(t, err)
	defer two.Close()
	assert.False(t, held(), "it is only shared")
	_, err = Try(path)
	require.ErrorIs(t, err, ErrLocked)
}
