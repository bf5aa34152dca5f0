package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// installed are the files of the package in a directory.
func installed(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(filepath.Join(dir, "clusterrun"))
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.Name() == "__pycache__" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, "clusterrun", entry.Name()))
		require.NoError(t, err)
		found[entry.Name()] = string(content)
	}
	return found
}

func TestInstall(t *testing.T) {
	root := filepath.Join(t.TempDir(), "python")
	dir, err := Install(root, "")
	require.NoError(t, err)
	assert.Equal(t, installed(t, "."), installed(t, dir))
	path := filepath.Join(dir, "clusterrun", "__init__.py")
	before, err := os.Stat(path)
	require.NoError(t, err)

	again, err := Install(root, "")
	require.NoError(t, err)
	assert.Equal(t, dir, again)
	after, err := os.Stat(path)
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "what is right is left alone")

	require.NoError(t, os.WriteFile(path, []byte("damaged"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, binaryFile)))
	_, err = Install(root, "")
	require.NoError(t, err)
	assert.Equal(t, installed(t, "."), installed(t, dir))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing else is left there")
}

// The package knows the program it came from, whatever that is called.
func TestInstallOfAProgram(t *testing.T) {
	dir, err := Install(t.TempDir(), `/opt/it's "here"/clusterrun`)
	require.NoError(t, err)
	assert.Equal(t, "/opt/it's \"here\"/clusterrun\n", binaryOf(t, "python3", dir))
}

// Python imports the package from the archive.
func TestArchive(t *testing.T) {
	archive, err := Archive("/opt/clusterrun")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "clusterrun.zip")
	require.NoError(t, os.WriteFile(file, archive, 0o644))
	assert.Equal(t, "/opt/clusterrun\n", binaryOf(t, "python3", file))
}

// pip installs the project and the archive, and needs no package index for that.
func TestPip(t *testing.T) {
	venv := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.Command("python3", "-m", "venv", venv).CombinedOutput(); err != nil {
		t.Skipf("there is no venv: %s", out)
	}
	archive, err := Archive("/opt/clusterrun")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "clusterrun.zip")
	require.NoError(t, os.WriteFile(file, archive, 0o644))
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	for source, binary := range map[string]string{here: "", file: "/opt/clusterrun"} {
		out, err := exec.Command(venv+"/bin/pip", "install", "--no-index", "--force-reinstall", source).CombinedOutput()
		require.NoError(t, err, string(out))
		assert.Equal(t, binary+"\n", binaryOf(t, venv+"/bin/python3", ""))
	}
}

// binaryOf returns the program that a package in PYTHONPATH has come from.
func binaryOf(t *testing.T, interpreter, path string) string {
	t.Helper()
	if _, err := exec.LookPath(interpreter); err != nil {
		t.Skip("there is no " + interpreter)
	}
	cmd := exec.Command(interpreter, "-c", "import clusterrun, clusterrun._binary as b; print(b.PATH)")
	cmd.Dir = t.TempDir() // not where the package is, too
	cmd.Env = append(os.Environ(), "PYTHONPATH="+path, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

func TestTheProjectHasOurVersion(t *testing.T) {
	project, err := os.ReadFile("pyproject.toml")
	require.NoError(t, err)
	assert.Contains(t, string(project), "\nversion = \""+spec.Version+"\"\n")
}

func TestInstallSideBySide(t *testing.T) {
	root := t.TempDir()
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			dir, err := Install(root, "")
			if assert.NoError(t, err) {
				assert.FileExists(t, filepath.Join(dir, "clusterrun", "py.typed"), "the last of them")
			}
		})
	}
	group.Wait()
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, installed(t, "."), installed(t, filepath.Join(root, entries[0].Name())))
}

func TestInstallWhereItCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err := Install(file, "")
	require.ErrorContains(t, err, "the Python package: ")
	require.ErrorContains(t, err, "not a directory")
}
