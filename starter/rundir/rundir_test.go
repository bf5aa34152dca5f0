package rundir

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workers/connect"
)

func record() Record {
	return Record{
		Server: connect.Options{Address: "127.0.0.1:1", Namespace: "default"}, Embedded: true,
		Queue: "clusterrun/run/x", RunID: "iris-1", PID: 42, Started: time.Unix(100, 0).UTC(),
	}
}

// abandon releases a directory's lock, as if its owner had died.
func abandon(d *Dir) { d.lock.Close() }

func TestADirectoryOfALivingOwner(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "runs")
	d := must.Get(Create(parent))(t)
	require.NoError(t, d.Save(record()))
	info := must.Get(os.Stat(d.Path))(t)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	dirs := must.Get(Abandoned(parent))(t)
	assert.Empty(t, dirs)

	require.NoError(t, d.Remove())
	assert.NoDirExists(t, d.Path)
}

func TestADirectoryOfADeadOwner(t *testing.T) {
	parent := t.TempDir()
	d := must.Get(Create(parent))(t)
	require.NoError(t, d.Save(record()))
	abandon(d)

	dirs := must.Get(Abandoned(parent))(t)
	require.Len(t, dirs, 1)
	r := must.Get(dirs[0].Load())(t)
	assert.Equal(t, record(), r)

	// A locked directory is not returned a second time.
	others := must.Get(Abandoned(parent))(t)
	assert.Empty(t, others)
	require.NoError(t, dirs[0].Remove())
	others = must.Get(Abandoned(parent))(t)
	assert.Empty(t, others)
}

func TestADirectoryWithoutARun(t *testing.T) {
	parent := t.TempDir()
	d := must.Get(Create(parent))(t)
	abandon(d)
	dirs := must.Get(Abandoned(parent))(t)
	require.Len(t, dirs, 1)
	r := must.Get(dirs[0].Load())(t)
	assert.Empty(t, r.RunID)
}

// Abandoned skips a directory that is being created, and removes one that a crash left
// incomplete once it is old enough.
func TestUnbornDirectories(t *testing.T) {
	parent := t.TempDir()
	young, old := filepath.Join(parent, unborn+"a"), filepath.Join(parent, unborn+"b")
	require.NoError(t, os.Mkdir(young, 0o700))
	require.NoError(t, os.Mkdir(old, 0o700))
	then := time.Now().Add(-2 * unbornFor)
	require.NoError(t, os.Chtimes(old, then, then))
	dirs := must.Get(Abandoned(parent))(t)
	assert.Empty(t, dirs)
	assert.DirExists(t, young)
	assert.NoDirExists(t, old)
}

func TestNoDirectoriesAtAll(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "none")
	dirs := must.Get(Abandoned(parent))(t)
	assert.Empty(t, dirs)
}
