package filelock

import (
	"io/fs"
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
