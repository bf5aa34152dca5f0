package taskapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the module
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/tasklog"
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
	if err := tasklog.Replace(path, Python); err != nil {
		return "", fmt.Errorf("the Python module: %w", err)
	}
	return own, nil
}
