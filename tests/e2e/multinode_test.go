package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// An unmodified script for torchrun trains on three hosts with two processes each, which
// meet at MASTER_ADDR and then connect to each other over gloo.
func TestDDPOnThreeHosts(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import torch").Run(); err != nil {
		t.Skip("PyTorch is not installed (Debian: python3-torch)")
	}
	h := newOnHosts(t, 3)
	script := filepath.Join(harness.Root(), "starter/examples/ddp/train.py")
	code, stdout, stderr := h.run(h.args(h.Agent, "-H", "a,b,c", "--nnodes", "3", "--nproc-per-node", "2", "--", python, script)...)
	require.Zero(t, code, stderr)
	for rank := range 6 {
		assert.Contains(t, stdout, fmt.Sprintf("rank %d of 6, local rank %d\n", rank, rank%2))
		assert.Contains(t, stdout, fmt.Sprintf("rank %d agrees with all others", rank))
	}
	h.gone()
}

// A program for TF_CONFIG trains on three hosts: the chief and a worker on one, workers and a
// parameter server on the others, which find each other by their addresses alone.
func TestTFConfigOnThreeHosts(t *testing.T) {
	t.Parallel()
	h := newOnHosts(t, 3)
	spec, err := os.ReadFile(filepath.Join(harness.Root(), "starter/examples/logistic/run.yaml"))
	require.NoError(t, err)
	h.write("run.yaml", string(spec))
	code, stdout, stderr := h.run(h.args(h.Agent, "--id", "logistic", "-H", "a:2,b:2,c:2", "--dir", harness.Root(), "run.yaml")...)
	require.Zero(t, code, stderr)
	assert.Regexp(t, `accuracy`, stdout)
	code, stdout, stderr = h.run("wait", "--json", "logistic")
	require.Zero(t, code, stderr)
	assert.Contains(t, strings.ReplaceAll(stdout, " ", ""), `"accuracy":0.9`)
	for _, host := range h.Hosts {
		assert.Regexp(t, regexp.QuoteMeta(fmt.Sprintf("%q", host.Name)), stdout)
	}
	h.gone()
}
