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
	"github.com/clusterrun/clusterrun/tests/must"
)

// An unmodified script for torchrun trains on three hosts with two processes each, which
// meet at MASTER_ADDR and then connect to each other over gloo.
func TestDDPOnThreeHosts(t *testing.T) {
	takesLong(t)
	t.Parallel()
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import torch").Run(); err != nil {
		t.Skip("PyTorch is not installed (Debian: python3-torch)")
	}
	h := newOnHosts(t, 3)
	script := filepath.Join(harness.Root(), "starter/examples/ddp/train.py")
	stdout := h.ok(h.args(h.Agent, "-H", "a,b,c", "--nnodes", "3", "--nproc-per-node", "2", "--", python, script)...)
	for rank := range 6 {
		assert.Contains(t, stdout, fmt.Sprintf("rank %d of 6, local rank %d\n", rank, rank%2))
		assert.Contains(t, stdout, fmt.Sprintf("rank %d agrees with all others", rank))
	}
	h.gone()
}

// A program for TF_CONFIG trains on three hosts: the chief and a worker on one, workers and a
// parameter server on the others. They find each other by their addresses only.
func TestTFConfigOnThreeHosts(t *testing.T) {
	t.Parallel()
	h := newOnHosts(t, 3)
	spec := must.Get(os.ReadFile(filepath.Join(harness.Root(), "starter/examples/logistic/run.yaml")))(t)
	h.write("run.yaml", string(spec))
	assert.Regexp(t, `accuracy`, h.ok(h.args(h.Agent, "--id", "logistic", "-H", "a:2,b:2,c:2", "--dir", harness.Root(), "run.yaml")...))
	stdout := h.ok("wait", "--json", "logistic")
	assert.Contains(t, strings.ReplaceAll(stdout, " ", ""), `"accuracy":0.9`)
	for _, host := range h.Hosts {
		assert.Regexp(t, regexp.QuoteMeta(fmt.Sprintf("%q", host.Name)), stdout)
	}
	h.gone()
}

// Before anything starts, the hosts check that they reach the host of rank 0 at the address
// that their tasks would get.
func TestRankZeroCannotBeReached(t *testing.T) {
	t.Parallel()
	h := newOnHosts(t, 2)
	// A network on which only ssh goes through to a.
	firewall := h.agent("firewall", `[ "$1" = a ] && ip netns exec `+h.Netns(h.Hosts[1])+` ip route replace unreachable `+h.Hosts[0].Address+`/32
exec `+h.Agent+` "$@"`)
	code, stdout, stderr := h.run(h.args(firewall, "--set", "placement_timeout=10s", "-H", "a,b", "--", "echo", "started")...)
	assert.Equal(t, 125, code, stderr)
	assert.Empty(t, stdout)
	assert.Regexp(t, `worker-1 could not be placed on host b: host b cannot reach a, which has rank 0, by its address `+regexp.QuoteMeta(h.Hosts[0].Address)+` \(MASTER_ADDR\): dial tcp .*: no route to host; connect their networks`, stderr)
	h.gone()

	stdout = h.ok(h.args(firewall, "-H", "a,b", "--set", "env_profiles=[tensorflow]", "--", "echo", "started")...)
	assert.Equal(t, 2, strings.Count(stdout, "started\n"), "without MASTER_ADDR nobody needs that address")
	h.gone()
}

// A program linked with MPI must be started by mpirun. Otherwise an error says so, since each
// process would be a world of its own and end well.
func TestMPI(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"gcc", "mpirun"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	l := newLocal(t)
	// Debian's headers are a package of their own.
	l.write("mpi.c", `
#include <stdio.h>
extern struct ompi_communicator_t ompi_mpi_comm_world;
int MPI_Init(int *, char ***), MPI_Comm_rank(void *, int *), MPI_Comm_size(void *, int *), MPI_Finalize(void);
int main(int argc, char **argv) {
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(&ompi_mpi_comm_world, &rank);
	MPI_Comm_size(&ompi_mpi_comm_world, &size);
	printf("rank %d of %d\n", rank, size);
	return MPI_Finalize();
}
`)
	compile := exec.Command("gcc", "-o", "mpi", "mpi.c", "-l:libmpi.so.40")
	compile.Dir = l.home
	if out, err := compile.CombinedOutput(); err != nil {
		t.Skipf("no program for Open MPI can be made here: %s", out)
	}
	const warning = "./mpi is linked with libmpi.so.40: each of its processes would be rank 0 of 1 here, since only mpirun tells them of each other; write `clusterrun run -n 1 -- mpirun -n COUNT ./mpi`"
	// Two processes of Open MPI that are started separately may both make its directory, and
	// then one of them fails.
	for _, name := range []string{"a", "b"} {
		require.NoError(t, os.Mkdir(filepath.Join(l.home, name), 0o700))
	}
	l.write("mpi.yaml", `
command: [./mpi]
tasks:
  - {type: a, env: {OMPI_MCA_orte_tmpdir_base: a}}
  - {type: b, env: {OMPI_MCA_orte_tmpdir_base: b}}
`)
	stdout, stderr := l.succeeds("run", "mpi.yaml")
	assert.Equal(t, 2, strings.Count(stdout, "rank 0 of 1\n"), stdout)
	assert.Contains(t, stderr, warning)

	stdout, stderr = l.succeeds("run", "-n", "1", "--", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "./mpi")
	assert.Contains(t, stdout, "rank 0 of 2\n")
	assert.Contains(t, stdout, "rank 1 of 2\n")
	assert.NotContains(t, stderr, "is linked with")
}
