package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// block is the first block of code in a language.
func block(t *testing.T, text, language string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, "\n```"+language+"\n")
	require.True(t, found, "the README has a block of %s", language)
	code, _, found := strings.Cut(rest, "\n```\n")
	require.True(t, found)
	return code + "\n"
}

// The program of the README that coordinates runs with the command that is there, and
// prints what is there.
func TestTheCoordinatorOfTheREADME(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("Python is not installed")
	}
	readme, err := os.ReadFile(filepath.Join(harness.Root(), "README.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(readme), "#### A Python program that coordinates")
	require.True(t, found)
	l := newLocal(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.py"), []byte(block(t, section, "python")), 0o644))
	p := harness.Start(t, dir, harness.Env(l.home, "PYTHONDONTWRITEBYTECODE=1",
		"PATH="+filepath.Dir(harness.Clusterrun(t))+":"+os.Getenv("PATH"), "CLUSTERRUN_DEVSERVER="+harness.Devserver(t)),
		"bash", "-c", block(t, section, "sh"))
	require.Zero(t, p.ExitCode(), p.Stderr())
	assert.Equal(t, block(t, section, "text"), p.Stdout())
}
