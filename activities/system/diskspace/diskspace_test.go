package diskspace_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/diskspace"
	"github.com/clusterrun/clusterrun/tests/must"
)

func TestOf(t *testing.T) {
	dir := t.TempDir()
	here := must.Get(diskspace.Of(dir))(t)
	assert.Equal(t, dir, here.At)
	assert.LessOrEqual(t, here.Free, here.All)
	var s unix.Statfs_t
	require.NoError(t, unix.Statfs(dir, &s))
	assert.Equal(t, s.Blocks*uint64(s.Frsize), here.All)

	missing := must.Get(diskspace.Of(filepath.Join(dir, "a", "b")))(t)
	assert.Equal(t, dir, missing.At)

	proc := must.Get(diskspace.Of("/proc"))(t)
	assert.Zero(t, proc.All, "it counts no space")
	assert.EqualValues(t, unix.PROC_SUPER_MAGIC, proc.Type)
}
