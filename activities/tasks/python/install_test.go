package python

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// installed returns the package files in a directory.
func installed(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries := must.Get(os.ReadDir(filepath.Join(dir, "clusterrun")))(t)
	for _, entry := range entries {
		if entry.Name() == "__pycache__" {
			continue
		}
		found[entry.Name()] = must.Read(t, dir, "clusterrun", entry.Name())
	}
	return found
}

func TestInstall(t *testing.T) {
	root := filepath.Join(t.TempDir(), "python")
	dir := must.Get(Install(root, ""))(t)
	assert.Equal(t, installed(t, "."), installed(t, dir))
	path := filepath.Join(dir, "clusterrun", "__init__.py")
	before := must.Get(os.Stat(path))(t)

	again := must.Get(Install(root, ""))(t)
	assert.Equal(t, dir, again)
	after := must.Get(os.Stat(path))(t)
	assert.True(t, os.SameFile(before, after), "what is right is left alone")

	require.NoError(t, os.WriteFile(path, []byte("damaged"), 0o644))
	require.NoError(t, os.Remove(filepath.Join(dir, binaryFile)))
	_, err := Install(root, "")
	require.NoError(t, err)
	assert.Equal(t, installed(t, "."), installed(t, dir))
	entries := must.Get(os.ReadDir(dir))(t)
	assert.Len(t, entries, 1, "nothing else is left there")
}

// The package knows its program's path, even if the path contains spaces and quotes.
func TestInstallOfAProgram(t *testing.T) {
	dir := must.Get(Install(t.TempDir(), `/opt/it's "here"/clusterrun`))(t)
	assert.Equal(t, "/opt/it's \"here\"/clusterrun\n", binaryOf(t, "python3", dir))
}

// Python imports the package from the archive.
func TestArchive(t *testing.T) {
	archive := must.Get(Archive("/opt/clusterrun"))(t)
	file := filepath.Join(t.TempDir(), "clusterrun.zip")
	require.NoError(t, os.WriteFile(file, archive, 0o644))
	assert.Equal(t, "/opt/clusterrun\n", binaryOf(t, "python3", file))
}

// pip installs the project, the archive, and the wheel with its programs, without a package index.
func TestPip(t *testing.T) {
	venv := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		t.Skipf("there is no venv: %s", out)
	}
	if out, err := exec.Command("python3", "-m", "pip", "--python", venv, "--version").CombinedOutput(); err != nil {
		t.Skipf("there is no pip that installs elsewhere: %s", out)
	}
	install := func(source string) {
		out, err := exec.Command("python3", "-m", "pip", "--python", venv, "install", "--no-index", "--no-build-isolation", "--force-reinstall", source).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	archive := must.Get(Archive("/opt/clusterrun"))(t)
	file := filepath.Join(t.TempDir(), "clusterrun.zip")
	require.NoError(t, os.WriteFile(file, archive, 0o644))
	sources := map[string]string{file: "/opt/clusterrun"}
	if !testing.Short() { // the archive contains the same project
		sources[must.Get(filepath.Abs("."))(t)] = ""
	}
	for source, binary := range sources {
		install(source)
		assert.Equal(t, binary+"\n", binaryOf(t, venv+"/bin/python3", ""))
	}

	install(wheel(t, t.TempDir()))
	for _, name := range []string{"clusterrun", "clusterrun-devserver"} {
		out := must.Get(exec.Command(filepath.Join(venv, "bin", name)).Output())(t)
		assert.Equal(t, name+"\n", string(out))
	}
	cmd := exec.Command(venv+"/bin/python3", "-c", `import clusterrun; clusterrun.run(["-n", "2", "true"], check=True)`)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=/nowhere"}
	out := must.Get(cmd.Output())(t)
	assert.Equal(t, "clusterrun run -n 2 true\n", string(out))
}

// wheel builds a wheel with placeholder programs, and returns its name.
func wheel(t *testing.T, dir string) string {
	t.Helper()
	args := []string{"-B", "backend.py", dir, "linux_x86_64.linux_aarch64"}
	for _, name := range []string{"clusterrun", "clusterrun-devserver"} {
		program := filepath.Join(t.TempDir(), name)
		require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho "+name+` "$@"`+"\n"), 0o755))
		args = append(args, program)
	}
	cmd := exec.Command("python3", args...)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	out := must.Get(cmd.Output())(t)
	return filepath.Join(dir, strings.TrimSpace(string(out)))
}

func TestWheel(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	name := wheel(t, t.TempDir())
	assert.Equal(t, "clusterrun-"+spec.Version+"-py3-none-linux_x86_64.linux_aarch64.whl", filepath.Base(name))
	ours := must.Get(os.ReadFile(name))(t)
	again := must.Get(os.ReadFile(wheel(t, t.TempDir())))(t)
	assert.True(t, bytes.Equal(ours, again), "the same files make the same wheel")

	archive := must.Get(zip.NewReader(bytes.NewReader(ours), int64(len(ours))))(t)
	content := map[string]string{}
	var record []string
	info := "clusterrun-" + spec.Version + ".dist-info/"
	for _, f := range archive.File {
		all := must.Get(fs.ReadFile(archive, f.Name))(t)
		content[f.Name] = string(all)
		want := fs.FileMode(0o644)
		if strings.Contains(f.Name, ".data/scripts/") {
			want = 0o755
		}
		assert.Equal(t, want, f.Mode(), f.Name)
		sum := sha256.Sum256(all)
		line := fmt.Sprintf("%s,sha256=%s,%d", f.Name, base64.RawURLEncoding.EncodeToString(sum[:]), len(all))
		if f.Name == info+"RECORD" {
			line = f.Name + ",,"
		}
		record = append(record, line)
	}
	assert.Equal(t, strings.Join(record, "\n")+"\n", content[info+"RECORD"])
	assert.Equal(t, "Wheel-Version: 1.0\nGenerator: clusterrun\nRoot-Is-Purelib: false\nTag: py3-none-linux_x86_64\nTag: py3-none-linux_aarch64\n",
		content[info+"WHEEL"])
	for _, name := range []string{"clusterrun/__init__.py", "clusterrun/py.typed", "clusterrun-" + spec.Version + ".data/scripts/clusterrun-devserver"} {
		assert.Contains(t, content, name)
	}
}

// binaryOf returns the program of a package in PYTHONPATH.
func binaryOf(t *testing.T, interpreter, path string) string {
	t.Helper()
	if _, err := exec.LookPath(interpreter); err != nil {
		t.Skip("there is no " + interpreter)
	}
	cmd := exec.Command(interpreter, "-c", "import clusterrun, clusterrun._binary as b; print(b.PATH)")
	cmd.Dir = t.TempDir() // not a directory that also contains the package
	cmd.Env = append(os.Environ(), "PYTHONPATH="+path, "PYTHONDONTWRITEBYTECODE=1")
	out := must.Get(cmd.Output())(t)
	return string(out)
}

func TestTheProjectHasOurVersion(t *testing.T) {
	assert.Contains(t, must.Read(t, "pyproject.toml"), "\nversion = \""+spec.Version+"\"\n")
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
	entries := must.Get(os.ReadDir(root))(t)
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

// The help page lists all names of the package.
func TestThePageHasAllNames(t *testing.T) {
	t.Parallel()
	page := must.Get(os.ReadFile("../../../starter/help/topics/reference/python.md"))(t)
	source := must.Get(os.ReadFile("clusterrun/__init__.py"))(t)
	list := regexp.MustCompile(`(?s)__all__ = \[(.*?)\]`).FindSubmatch(source)
	require.NotNil(t, list)
	names := regexp.MustCompile(`"(\w+)"`).FindAllSubmatch(list[1], -1)
	assert.Greater(t, len(names), 30)
	for _, name := range names {
		assert.Regexp(t, "`"+string(name[1])+`\b`, string(page))
	}
}

// The tests in tests/ pass with each installed interpreter.
func TestPythonUnittests(t *testing.T) {
	for version, program := range interpreters(t, "3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14") {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			// A hanging test prints its stacks.
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, "-B", "-W", "error", "-X", "faulthandler", "-m", "unittest", "discover", "-v", "tests")
			cmd.Env = append(os.Environ(), "CLUSTERRUN_STACK_SIGNAL=", "CLUSTERRUN_STACK_FILE=")
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGABRT) }
			cmd.WaitDelay = 10 * time.Second
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Regexp(t, `\nRan [1-9]\d* tests? in `, string(out))
		})
	}
}
