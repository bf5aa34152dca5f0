package diskspace_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/activities/system/diskspace"
	"github.com/clusterrun/clusterrun/tests/must"
)

func TestLeft(t *testing.T) {
	dir := t.TempDir()
	uid := uint32(os.Getuid())
	write := func(name string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, make([]byte, 64<<10), 0o600))
		return path
	}
	write("older")
	since := waitForTick(t, dir)
	write("left")
	open := must.Get(os.OpenFile(write("open"), os.O_RDWR, 0))(t)
	defer open.Close()
	mapped := must.Get(os.OpenFile(write("mapped"), os.O_RDWR, 0))(t)
	data := must.Get(unix.Mmap(int(mapped.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED))(t)
	require.NoError(t, mapped.Close())
	require.NoError(t, os.Mkdir(filepath.Join(dir, "directory"), 0o700))
	until := waitForTick(t, dir)
	write("later")

	files := must.Get(diskspace.ShmLeft(dir, uid, since, until))(t)
	require.Len(t, files, 1)
	assert.Equal(t, "left", files[0].Name)
	assert.EqualValues(t, 64<<10, diskspace.ShmBytes(files))
	assert.Empty(t, must.Get(diskspace.ShmLeft(dir, uid+1, since, until))(t), "of another user")

	require.NoError(t, unix.Munmap(data))
	require.NoError(t, open.Close())
	files = must.Get(diskspace.ShmLeft(dir, uid, since, until))(t)
	assert.Len(t, files, 3)
	gone := must.Get(diskspace.RemoveShm(dir, files))(t)
	assert.Len(t, gone, 3)
	assert.NoFileExists(t, filepath.Join(dir, "mapped"))
	assert.FileExists(t, filepath.Join(dir, "older"))
	assert.FileExists(t, filepath.Join(dir, "later"))
}

// waitForTick returns a time after all existing files and before all later files: file systems'
// clocks are coarse.
func waitForTick(t *testing.T, dir string) time.Time {
	t.Helper()
	at := time.Now()
	path := filepath.Join(dir, ".tick")
	for {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		info := must.Get(os.Stat(path))(t)
		require.NoError(t, os.Remove(path))
		if info.ModTime().After(at) {
			return info.ModTime()
		}
	}
}
