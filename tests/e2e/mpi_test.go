package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// solver is a program for MPICH. It declares what it needs, since Debian packages the headers
// separately. The second command-line argument selects what it does.
const solver = `
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int MPI_Init(int *, char ***), MPI_Comm_rank(int, int *), MPI_Comm_size(int, int *), MPI_Finalize(void), MPI_Abort(int, int);
int MPI_Allreduce(const void *, void *, int, int, int, int);
enum { WORLD = 0x44000000, INT = 0x4c000405, SUM = 0x58000003 };
int main(int argc, char **argv) {
	int rank, size, sum = 0;
	const char *what = argc > 1 ? argv[1] : "";
	setenv("UCX_NET_DEVICES", "lo", 1); /* UCX fails if an interface of another test goes while it looks at it */
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(WORLD, &rank);
	MPI_Comm_size(WORLD, &size);
	if (!strcmp(what, "abort")) {
		if (rank == 1) MPI_Abort(WORLD, 3);
		pause();
	}
	if (rank == 1 && !strcmp(what, "segv")) { signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); }
	if (rank == 1 && !strcmp(what, "once") && !strcmp(getenv("CLUSTERRUN_GENERATION"), "0")) _exit(9);
	MPI_Allreduce(&rank, &sum, 1, INT, SUM, WORLD);
	printf("rank %d of %d, sum %d\n", rank, size, sum);
	if (rank == 1 && !strcmp(what, "leave")) _exit(0);
	return MPI_Finalize();
}
`

// makeSolver builds the program and returns its path.
func makeSolver(t *testing.T, dir string) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("there is no gcc")
	}
	source, program := filepath.Join(dir, "solver.c"), filepath.Join(dir, "solver")
	require.NoError(t, os.WriteFile(source, []byte(solver), 0o600))
	if out, err := exec.Command("gcc", "-o", program, source, "-l:libmpich.so.12").CombinedOutput(); err != nil {
		t.Skipf("no program for MPICH can be made here (Debian: libmpich12): %s", out)
	}
	return program
}

func ranks(n int) (lines []string) {
	for rank := range n {
		lines = append(lines, fmt.Sprintf("rank %d of %d, sum %d\n", rank, n, n*(n-1)/2))
	}
	return lines
}

// A program linked with MPICH is one MPI world without further flags, and its ranks exit as they
// do without MPI.
func TestMPICH(t *testing.T) {
	t.Parallel()
	l := withSharedServer(t)
	makeSolver(t, l.home)
	for _, command := range [][]string{
		{"--", "./solver"},
		{"--set", "env_profiles=[mpi]", "--", "bash", "-c", "./solver"},
		{"--", "bash", "-c", `exec "$0" task mpi -- ./solver`, harness.Clusterrun(t)},
	} {
		stdout, stderr := l.succeeds(append([]string{"run", "-n", "3"}, command...)...)
		for _, line := range ranks(3) {
			assert.Contains(t, stdout, line)
		}
		assert.NotContains(t, stderr, "linked with")
	}

	// A rank's exit counts although another process inherited its PMI descriptor.
	assert.Contains(t, l.fails(3, "run", "-n", "1", "--set", "env_profiles=[mpi]", "--", "bash", "-c", "sleep 3600 & sleep 0.5; exit 3"), "exit code 3")

	stderr := l.fails(3, "run", "-n", "3", "--", "./solver", "abort")
	assert.Contains(t, stderr, "worker-1 reported an error: MPI_Abort: MPI_Abort was called with 3")
	assert.Contains(t, stderr, "2 were stopped because of it")

	assert.Regexp(t, `failed: Subprocess worker-1 exited with exit code 139 \(SIGSEGV\)`, l.fails(139, "run", "-n", "3", "--", "./solver", "segv"))

	code, _, stderr := l.run("run", "-n", "2", "--", "./solver", "leave")
	assert.NotZero(t, code)
	assert.Regexp(t, `worker-1 exited with exit code 0 (without arriving )?and does not come back`, stderr)

	stdout := l.ok("run", "-n", "3", "--restart-scope", "group", "--max-restarts", "1", "--", "./solver", "once")
	for _, line := range ranks(3) {
		assert.Contains(t, stdout, line)
	}

	assert.Contains(t, l.fails(2, "run", "-n", "3", "--auto-restart", "--", "./solver"), "an MPI rank that restarts alone cannot rejoin the other ranks; add --restart-scope group")

	stdout, stderr = l.succeeds("run", "-n", "2", "--set", "env_profiles=[torch]", "--", "./solver")
	assert.Equal(t, 2, strings.Count(stdout, "rank 0 of 1"), "the profiles were given")
	assert.Contains(t, stderr, "./solver is linked with libmpich.so.12: each of its processes would be rank 0 of 1; add mpi to env_profiles: --set 'env_profiles=[torch,mpi]'")
}
