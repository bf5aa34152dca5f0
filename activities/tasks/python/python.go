// Package python contains the Python package clusterrun, which offers programs the same as the Go
// package task. With pyproject.toml, its directory is a project that pip can install. It is
// embedded in the program clusterrun.
package python

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/clusterrun/clusterrun/activities/process/taskenv"
	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
)

//go:embed pyproject.toml backend.py clusterrun/*.py clusterrun/py.typed
var project embed.FS

//go:embed hook/sitecustomize.py
var chained []byte

// hookFile is the hook's part that is also in the package.
const hookFile = "clusterrun/_stackhook.py"

// binaryFile names the package's program clusterrun.
const binaryFile = "clusterrun/_binary.py"

// file is a project file.
type file struct {
	name    string // with slashes
	content []byte
}

// files returns the project's files, sorted by name. The package executes binary for process
// pools. If binary is "", the package searches PATH.
func files(binary string) ([]file, error) {
	quoted, err := json.Marshal(binary) // also a valid Python string
	if err != nil {
		return nil, err
	}
	var all []file
	err = fs.WalkDir(project, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := project.ReadFile(name)
		if name == binaryFile {
			content = bytes.Replace(content, []byte(`PATH = ""`), append([]byte("PATH = "), quoted...), 1)
		}
		all = append(all, file{name, content})
		return err
	})
	return all, err
}

// Install makes sure that the package is in a directory in dir, and returns that directory, for
// PYTHONPATH. Each version of the package has its own directory, so a running program keeps the
// version that it started with. binary is the program clusterrun that the package executes for
// process pools. If binary is "", the package searches PATH.
func Install(dir, binary string) (string, error) {
	all, err := files(binary)
	if err != nil {
		return "", fmt.Errorf("the Python package: %w", err)
	}
	sum := sha256.New()
	for _, f := range all {
		fmt.Fprintf(sum, "%s %d\n%s", f.name, len(f.content), f.content)
	}
	own := filepath.Join(dir, hex.EncodeToString(sum.Sum(nil)[:6]))
	for _, f := range all {
		if path.Dir(f.name) == "." { // for pip
			continue
		}
		target := filepath.Join(own, filepath.FromSlash(f.name))
		if there, err := os.ReadFile(target); err == nil && bytes.Equal(there, f.content) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return "", fmt.Errorf("the Python package: %w", err)
		}
		if err := atomicfile.Write(target, f.content, 0o644); err != nil {
			return "", fmt.Errorf("the Python package: %w", err)
		}
	}
	return own, nil
}

// InstallHook makes sure that a directory in dir contains the module that every Python program of
// a task executes first if PYTHONPATH names the directory first, and returns the directory. The
// module lets the host capture the program's stacks, and then executes the sitecustomize that
// Python would have executed without it. A program without the package that imports it gets
// binary's package. See [taskenv.HookPrefix] for the name.
func InstallHook(dir, binary string) (string, error) {
	hook, err := project.ReadFile(hookFile)
	if err != nil {
		return "", fmt.Errorf("the hook for Python: %w", err)
	}
	quoted, err := json.Marshal(binary)
	if err != nil {
		return "", fmt.Errorf("the hook for Python: %w", err)
	}
	hook = slices.Concat(hook, bytes.Replace(chained, []byte(`BINARY = ""`), append([]byte("BINARY = "), quoted...), 1))
	sum := sha256.Sum256(hook)
	own := filepath.Join(dir, taskenv.HookPrefix+hex.EncodeToString(sum[:6]))
	target := filepath.Join(own, "sitecustomize.py")
	if there, err := os.ReadFile(target); err == nil && bytes.Equal(there, hook) {
		return own, nil
	}
	if err = os.MkdirAll(own, 0o755); err == nil {
		err = atomicfile.Write(target, hook, 0o644)
	}
	if err != nil {
		return "", fmt.Errorf("the hook for Python: %w", err)
	}
	return own, nil
}

// Archive returns the project as a zip file, which Python can import the package from, and pip can
// install. binary is as in [Install].
func Archive(binary string) ([]byte, error) {
	all, err := files(binary)
	if err != nil {
		return nil, fmt.Errorf("the Python package: %w", err)
	}
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range all {
		member, err := w.Create(f.name)
		if err == nil {
			_, err = member.Write(f.content)
		}
		if err != nil {
			return nil, fmt.Errorf("the Python package: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("the Python package: %w", err)
	}
	return b.Bytes(), nil
}
