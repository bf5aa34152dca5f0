package taskapi

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for the module
	"encoding/hex"
	"encoding/json"
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

// noBinary is the line of the module that is to name the program clusterrun.
const noBinary = "_BINARY = \"\""

// PythonOf is the module with the path of the program clusterrun that it came from,
// which it executes for pools of processes.
func PythonOf(binary string) []byte {
	quoted, err := json.Marshal(binary) // a string of Python as well
	if err != nil {
		return Python
	}
	return bytes.Replace(Python, []byte(noBinary), append([]byte("_BINARY = "), quoted...), 1)
}

// InstallPython makes sure that the module is in a directory below dir, and
// returns that directory, for PYTHONPATH. Each version of the module has one of
// its own: a program that runs keeps what it started with.
func InstallPython(dir string) (string, error) { return install(dir, Python) }

// InstallPythonOf is InstallPython with what is [PythonOf] the program.
func InstallPythonOf(dir, binary string) (string, error) { return install(dir, PythonOf(binary)) }

func install(dir string, module []byte) (string, error) {
	sum := sha256.Sum256(module)
	own := filepath.Join(dir, hex.EncodeToString(sum[:6]))
	path := filepath.Join(own, pythonFile)
	if there, err := os.ReadFile(path); err == nil && bytes.Equal(there, module) {
		return own, nil
	}
	if err := os.MkdirAll(own, 0o755); err != nil {
		return "", fmt.Errorf("the Python module: %w", err)
	}
	if err := tasklog.Replace(path, module); err != nil {
		return "", fmt.Errorf("the Python module: %w", err)
	}
	return own, nil
}
