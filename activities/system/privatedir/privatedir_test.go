package privatedir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestMake(t *testing.T) {
	parent := t.TempDir()
	link := filepath.Join(parent, "link")
	require.NoError(t, os.Symlink(t.TempDir(), link))
	require.ErrorContains(t, Make(link), "is not a directory")
	open := filepath.Join(parent, "open")
	require.NoError(t, os.Mkdir(open, 0o777))
	require.NoError(t, Make(open))
	info := must.Get(os.Stat(open))(t)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	if os.Getuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	foreign := filepath.Join(parent, "foreign")
	require.NoError(t, os.Mkdir(foreign, 0o777))
	require.NoError(t, os.Chown(foreign, 12345, 12345))
	require.ErrorContains(t, Make(foreign), "belongs to another user")
}

func TestSockets(t *testing.T) {
	const longest = 27
	short := t.TempDir()
	if len(short) > 70 {
		t.Skip("TMPDIR is too long itself")
	}
	dir := must.Get(socketsIn(short, "tasks", longest, nil))(t)
	assert.Equal(t, filepath.Join(short, "tasks"), dir)

	long := filepath.Join(short, strings.Repeat("x", 100))
	temp := []string{"relative", filepath.Join(short, strings.Repeat("y", 100)), filepath.Join(short, "t")}
	dir = must.Get(socketsIn(long, "tasks", longest, temp))(t)
	assert.Equal(t, temp[2], filepath.Dir(dir))
	assert.LessOrEqual(t, len(dir)+longest, MaxSocketPath)
	for _, of := range [][2]string{{long, "server"}, {long + "y", "tasks"}} {
		other := must.Get(socketsIn(of[0], of[1], longest, temp))(t)
		assert.NotEqual(t, dir, other, "each has its own")
	}
	_, err := socketsIn(long, "tasks", longest, temp[:2])
	require.ErrorContains(t, err, "choose a shorter state directory")

	foreign := filepath.Join(short, "f")
	require.NoError(t, os.WriteFile(foreign, nil, 0o600))
	dir = must.Get(socketsIn(long, "tasks", longest, []string{foreign, temp[2]}))(t)
	assert.Equal(t, temp[2], filepath.Dir(dir), "another one is tried")
	_, err = socketsIn(long, "tasks", longest, []string{foreign})
	require.ErrorContains(t, err, foreign+" is not a directory")
}

// Files that outlive a login are not in the directory that is removed with it.
func TestNothingIsInTheDirectoryOfTheLogin(t *testing.T) {
	login := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", login)
	t.Setenv("TMPDIR", "/var/tmp")
	for _, dir := range Temp() {
		assert.False(t, strings.HasPrefix(dir, login), dir)
	}
	assert.Equal(t, "/var/tmp", filepath.Dir(Temp()[0]))
}
