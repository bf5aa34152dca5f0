package diskspace_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/diskspace"
)

func TestOf(t *testing.T) {
	dir := t.TempDir()
	here, err := diskspace.Of(dir)
	require.NoError(t, err)
	assert.Equal(t, dir, here.At)
	assert.LessOrEqual(t, here.Free, here.All)
	var s unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &s))
	assert.Equal(t, s.Blocks*uint64(s.Frsize), here.All)

	missing, err := diskspace.Of(filepath.Join(dir, "a", "b"))
	require.NoError(t, err)
	assert.Equal(t, dir, missing.At)

	proc, err := diskspace.Of("/proc")
	require.NoError(t, err)
	assert.Zero(t, proc.All, "it counts no space")
	assert.EqualValues(t, unix.PROC_SUPER_MAGIC, proc.Type)
}
