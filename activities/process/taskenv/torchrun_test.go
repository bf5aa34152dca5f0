package taskenv

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// The variables are compared with those that the real torchrun sets.
func TestSameVariablesAsTorchrun(t *testing.T) {
	const python = "/usr/bin/python3" // where distributions put a packaged torch
	if testing.Short() || exec.Command(python, "-c", "import torch.distributed.run").Run() != nil {
		t.Skip("needs torch for " + python)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "dumpenv.py")
	require.NoError(t, os.WriteFile(script, []byte(`import json, os
with open(os.path.join(os.environ["OUT"], os.environ["RANK"]), "w") as f:
    json.dump(dict(os.environ), f)
`), 0o600))
	base := []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "LC_ALL=C.UTF-8", "OUT=" + dir}

	// One stream is redirected explicitly, because torch 1.13 cannot parse its own default
	// for these options under Python 3.11.
	cmd := exec.Command(python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
		"-r", "1", "-t", "1", "--log_dir", filepath.Join(dir, "logs"), script)
	cmd.Env = base
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Run(), "%s", &stderr)

	cluster := &hostapi.Cluster{
		MasterAddr: "localhost", MasterPort: 1, Hosts: 1, Profiles: []spec.EnvProfile{spec.EnvTorch},
		Members: []hostapi.Member{
			{Type: "default", Index: 0, Rank: 0, LocalRank: 0, LocalWorldSize: 2},
			{Type: "default", Index: 1, Rank: 1, LocalRank: 1, LocalWorldSize: 2},
		},
	}
	for rank, task := range []string{"default-0", "default-1"} {
		b := must.Get(os.ReadFile(filepath.Join(dir, strconv.Itoa(rank))))(t)
		theirs := must.JSON[map[string]string](t, b)
		// Old versions set only this variable's old name.
		if v, ok := theirs["NCCL_ASYNC_ERROR_HANDLING"]; ok {
			delete(theirs, "NCCL_ASYNC_ERROR_HANDLING")
			theirs["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = v
		}
		list := must.Get(Environ(base, Process{Cluster: cluster, Task: task, WorkflowID: "x", ErrorFile: "/e"}))(t)
		ours := fromList(list)
		for name := range ours {
			if strings.HasPrefix(name, ownPrefix) || name == "PYTHONUNBUFFERED" {
				delete(ours, name)
			}
		}
		assert.ElementsMatch(t, names(theirs), names(ours))

		// Variables that depend on neither the launch nor the machine have the same value.
		for name, value := range theirs {
			if !slices.Contains([]string{"TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "MASTER_ADDR", "MASTER_PORT"}, name) {
				assert.Equal(t, value, ours[name], name)
			}
		}
	}
}

func names(env map[string]string) []string {
	var out []string
	for name := range env {
		out = append(out, name)
	}
	return out
}
