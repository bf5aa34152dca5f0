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

// Python is the interpreter for which Debian packages modules.
const Python = "/usr/bin/python3"

// endBound is the longest time a script may take to end, with the processes that it started.
const endBound = 10 * time.Second

// Script writes a script of that name to a directory, and returns its path.
func Script(name, dir string) (string, error) {
	text, err := scripts.ReadFile(name + ".py")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name+".py")
	return path, os.WriteFile(path, text, 0o600)
}

// Run runs a script and returns the numbers in the last line that it prints. If a module is
// missing, the error says so.
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
