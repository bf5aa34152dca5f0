package run

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Agents of one user on one machine share a key. An empty key file, as after a power cut, is
// refused, since an empty key would not be secret.
func TestOwnKey(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	first, err := ownKey(dir)
	require.NoError(t, err)
	second, err := ownKey(dir)
	require.NoError(t, err)
	assert.Equal(t, first, second)

	file := filepath.Join(dir, "agents.key")
	require.NoError(t, os.Truncate(file, 0))
	_, err = ownKey(dir)
	assert.EqualError(t, err, file+": the secret has 0 bytes; it needs 16; remove the file, and a new one is made")
	require.NoError(t, os.Remove(file))
	third, err := ownKey(dir)
	require.NoError(t, err)
	assert.NotEqual(t, first, third)
}
