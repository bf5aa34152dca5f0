package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// Another user of the machine finds only the port of the server, and can neither list runs nor
// start programs as its owner.
func TestAnotherUserOfTheMachine(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	l := newLocal(t)
	code, _, stderr := l.run("run", "-n", "1", "--", "true")
	require.Zero(t, code, stderr)
	address := l.server().Address

	h := newStranger(t)
	asNobody := func(args ...string) (int, string) {
		t.Helper()
		code, stdout, stderr := h.run(nil, args...)
		require.NotZero(t, code, stdout+stderr)
		return code, stdout + stderr
	}
	for _, args := range [][]string{{"list"}, {"status", "true-1"}, {"run", "--remote", "-n", "1", "--", "id"}} {
		code, said := asNobody(append([]string{h.program, "--address", address}, args...)...)
		assert.Equal(t, 125, code, said)
		// The server closes the connection, or resets it where it has not read all that came.
		assert.Regexp(t, "(no connection to the Temporal server|no Temporal server) at "+address, said, args)
	}
	_, said := asNobody("cat", filepath.Join(l.state(), "server", "key.pem"))
	assert.Contains(t, said, "Permission denied")
}

// copyProgram copies a program with cp. This process does not open it for writing: a child of a
// parallel test could inherit the open file, and a file that is open for writing cannot be
// executed.
func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "cp", from, to).CombinedOutput()
	require.NoError(t, err, string(out))
}

// The temporal CLI uses the server with the output of `clusterrun server env`, and so does clusterrun
// itself, which follows the server to another port.
func TestTheTemporalCLIAtTheOwnServer(t *testing.T) {
	t.Parallel()
	cli := harness.TemporalCLI(t)
	l := newLocal(t)
	l.write("use.sh", `set -e
eval "$(clusterrun server env)"
clusterrun run -n 1 --id first -- true
temporal workflow list | grep -c first
kill -9 $(sed 's/.*"pid":\([0-9]*\),.*/\1/' ~/.local/state/clusterrun/server/ready.json)
export TEMPORAL_ADDRESS=127.0.0.1:1
clusterrun list | grep -c first
eval "$(clusterrun server env)"
temporal workflow describe --workflow-id first | grep -c COMPLETED
clusterrun list --address localhost:1 || echo $?
clusterrun list --address $TEMPORAL_ADDRESS | grep -c first
`)
	p := harness.Start(t, l.home, harness.Env(l.home, "CLUSTERRUN_DEVSERVER="+harness.Devserver(t),
		"PATH="+filepath.Dir(harness.Clusterrun(t))+":"+filepath.Dir(cli)+":"+os.Getenv("PATH")), "bash", "use.sh")
	require.Zero(t, p.ExitCode(), p.Stderr())
	assert.Equal(t, "1\n1\n1\n2\n1\n", p.Stdout())
	assert.Contains(t, p.Stderr(), "--address localhost:1 is not the embedded server", "an address that is given counts")
}

// A container may be started with any user ID, with no name for it in the password file or the
// environment.
func TestUserWithoutAName(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	h := newStranger(t)
	const unknown = 4000000
	require.NoError(t, os.Chown(h.home, unknown, unknown))
	h.credential = &syscall.Credential{Uid: unknown, Gid: unknown}
	server := h.path("clusterrun-devserver")
	copyProgram(t, harness.Devserver(t), server)
	// It works without HOME, too, if CLUSTERRUN_STATE_DIR is set.
	p := harness.StartAs(t, h.credential, h.home, []string{"PATH=" + os.Getenv("PATH"), "CLUSTERRUN_STATE_DIR=" + h.path("state")},
		h.program, "run", "-n", "1", "--", "id", "-u")
	require.Zero(t, p.ExitCode(), p.Stderr())
	assert.Contains(t, p.Stdout(), "4000000")
}
