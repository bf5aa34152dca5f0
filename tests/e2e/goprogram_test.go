package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// A Go program in a separate module starts a run, follows its output and receives its result.
func TestAGoProgramFollowsItsRun(t *testing.T) {
	t.Parallel()
	f := onSharedServer(t)
	root := must.Get(filepath.Abs("../.."))(t)
	dir := t.TempDir()
	mod := strings.Replace(string(must.Get(os.ReadFile(filepath.Join(root, "go.mod")))(t)), "module github.com/clusterrun/clusterrun", "module example.com/follow", 1)
	mod += "\nrequire github.com/clusterrun/clusterrun v0.0.0\nreplace github.com/clusterrun/clusterrun => " + root + "\n"
	for name, text := range map[string]string{
		"go.mod":  mod,
		"go.sum":  string(must.Get(os.ReadFile(filepath.Join(root, "go.sum")))(t)),
		"main.go": string(must.Get(os.ReadFile("testdata/goprogram/main.go"))(t)),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", "follow", ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	follow := func(script string) (string, int) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "follow"), "/bin/sh", "-c", script)
		cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+f.Address)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	text, code := follow("echo step $RANK; echo done")
	assert.Zero(t, code, text)
	for _, line := range []string{"worker-0: step 0", "worker-1: step 1"} {
		assert.Contains(t, text, line)
	}
	assert.Equal(t, 2, strings.Count(text, "done\n"), text)
	text, code = follow("[ $RANK = 0 ] || { echo lost >&2; exit 3; }; exec sleep 1000")
	assert.Equal(t, 1, code)
	assert.Contains(t, text, "worker-1: lost\n")
	assert.Contains(t, text, "worker-1 exited with 3\n")
}
