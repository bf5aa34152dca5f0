package taskapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestInstallPython(t *testing.T) {
	root := filepath.Join(t.TempDir(), "python")
	dir, err := InstallPython(root)
	require.NoError(t, err)
	path := filepath.Join(dir, "clusterrun.py")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, Python, content)
	before, err := os.Stat(path)
	require.NoError(t, err)

	again, err := InstallPython(root)
	require.NoError(t, err)
	assert.Equal(t, dir, again)
	after, err := os.Stat(path)
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "what is right is left alone")

	require.NoError(t, os.WriteFile(path, []byte("damaged"), 0o644))
	_, err = InstallPython(root)
	require.NoError(t, err)
	content, err = os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, Python, content)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing else is left there")
}

// The module knows the program it came from, whatever that is called.
func TestPythonOfAProgram(t *testing.T) {
	dir, err := InstallPythonOf(t.TempDir(), `/opt/it's "here"/clusterrun`)
	require.NoError(t, err)
	python, err := exec.LookPath("python3")
	require.NoError(t, err)
	cmd := exec.Command(python, "-c", "import clusterrun; print(clusterrun._BINARY)")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.Output()
	require.NoError(t, err)
	assert.Equal(t, "/opt/it's \"here\"/clusterrun\n", string(out))
}

func TestInstallPythonSideBySide(t *testing.T) {
	root := t.TempDir()
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			dir, err := InstallPython(root)
			if !assert.NoError(t, err) {
				return
			}
			content, err := os.ReadFile(filepath.Join(dir, "clusterrun.py"))
			assert.NoError(t, err)
			assert.Equal(t, Python, content)
		})
	}
	group.Wait()
}

func TestInstallPythonWhereItCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err := InstallPython(file)
	require.ErrorContains(t, err, "the Python module: ")
	require.ErrorContains(t, err, "not a directory")
}
