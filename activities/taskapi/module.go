package taskapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the module
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Python is the source of the module clusterrun.
//
//go:embed python/clusterrun.py
var Python []byte

const pythonFile = "clusterrun.py"

// InstallPython makes sure that the module is in a directory below dir, and
// returns that directory, for PYTHONPATH. Each version of the module has one of
// its own: a program that runs keeps what it started with.
func InstallPython(dir string) (string, error) {
	sum := sha256.Sum256(Python)
	own := filepath.Join(dir, hex.EncodeToString(sum[:6]))
	path := filepath.Join(own, pythonFile)
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, Python) {
		return own, nil
	}
	if err := os.MkdirAll(own, 0o755); err != nil {
		return "", fmt.Errorf("the Python module: %w", err)
	}
	if err := replace(path, Python); err != nil {
		return "", fmt.Errorf("the Python module: %w", err)
	}
	return own, nil
}

// replace writes a file of which others see all or nothing.
func replace(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
