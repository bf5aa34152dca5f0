package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// example runs one of starter/examples as its README does.
func (l *local) example(name string, path string) (int, spec.RunResult, string) {
	l.t.Helper()
	p := harness.Start(l.t, harness.Root(), []string{"PATH=" + path, "HOME=" + l.home},
		harness.Clusterrun(l.t), "run", "--json", filepath.Join("starter/examples", name, "run.yaml"))
	code := p.ExitCode()
	var r spec.RunResult
	require.NoError(l.t, json.Unmarshal([]byte(p.Stdout()), &r), p.Stderr())
	return code, r, p.Stderr()
}

// A chief, three workers and two parameter servers find each other through
// TF_CONFIG and train on real data; the chief returns the accuracy.
func TestExampleLogistic(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, r, stderr := l.example("logistic", os.Getenv("PATH"))
	require.Zero(t, code, stderr)
	var value struct {
		Accuracy float64 `json:"accuracy"`
	}
	require.NoError(t, json.Unmarshal(task(r, "chief-0").Value, &value))
	assert.Greater(t, value.Accuracy, 0.9)
	for _, ps := range []string{"ps-0", "ps-1"} {
		assert.Equal(t, spec.CauseCollateral, task(r, ps).Exit.Cause, ps)
	}
}

// An unmodified torchrun script with four ranks on gloo.
func TestExampleDDP(t *testing.T) {
	t.Parallel()
	path := "/usr/bin:" + os.Getenv("PATH")
	probe := exec.Command("/usr/bin/python3", "-c", "import torch")
	if err := probe.Run(); err != nil {
		t.Skip("PyTorch is not installed (Debian: python3-torch)")
	}
	l := newLocal(t)
	code, r, stderr := l.example("ddp", path)
	require.Zero(t, code, stderr)
	assert.Len(t, r.Tasks, 4)
}

// A chief schedules closures on three workers, as its README says, and prints their values.
func TestExampleCoordinator(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("Python is not installed")
	}
	l := newLocal(t)
	readme, err := os.ReadFile(filepath.Join(harness.Root(), "starter/examples/coordinator/README.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "\n    PYTHONPATH=")
	require.True(t, found)
	command, rest, _ := strings.Cut(rest, "\n")
	_, rest, found = strings.Cut(rest, "The chief prints\n\n")
	require.True(t, found)
	shown, _, _ := strings.Cut(rest, "\n\n")
	p := harness.Start(t, harness.Root(), harness.Env(l.home, "PYTHONDONTWRITEBYTECODE=1",
		"PATH="+filepath.Dir(harness.Clusterrun(t))+":"+os.Getenv("PATH"), "CLUSTERRUN_DEVSERVER="+harness.Devserver(t)),
		"bash", "-c", "PYTHONPATH="+command)
	require.Zero(t, p.ExitCode(), p.Stderr())
	for line := range strings.Lines(shown + "\n") {
		assert.Contains(t, p.Stdout(), "[chief-0]:     "+strings.TrimPrefix(line, "    "))
	}
}
