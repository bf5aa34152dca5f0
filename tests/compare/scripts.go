package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

//go:embed *.py
var scripts embed.FS

// Python is the interpreter that Debian packages modules for.
const Python = "/usr/bin/python3"

// endBound limits how long a script and the processes that it started may take to exit.
const endBound = 10 * time.Second

// Script writes the named script to a directory, and returns its path.
func Script(name, dir string) (string, error) {
	text, err := scripts.ReadFile(name + ".py")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name+".py")
	return path, os.WriteFile(path, text, 0o600)
}

// Run runs a script and returns the numbers in its last line of output. If a module is missing,
// the error names it.
func Run(ctx context.Context, name string, args ...string) ([]float64, error) {
	dir, err := os.MkdirTemp("", "peer-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path, err := Script(name, dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, Python, append([]string{path}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PYTHONPATH="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = endBound
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return nil, fmt.Errorf("%s does not run here: %w: %s", name, err, lines[len(lines)-1])
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return Numbers(lines[len(lines)-1])
}

// Numbers returns the numbers in a line.
func Numbers(line string) ([]float64, error) {
	var list []float64
	for _, word := range strings.Fields(line) {
		n, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%q has no numbers", line)
	}
	return list, nil
}
