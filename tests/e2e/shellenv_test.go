package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// Processes on other hosts do not have the shell's environment, and the command reports that.
// They have the variables that -x and --env-from-shell name.
func TestTheShellsEnvironment(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := func(args ...string) (code int, stderr string) {
		home := t.TempDir()
		env := harness.Env(home, "TEMPORAL_ADDRESS="+f.Address, "GREETING=hello", f.mark)
		argv := append([]string{harness.Clusterrun(t), "run", "--remote", "--dir", f.dir}, args...)
		p := harness.Start(t, home, env, append(argv, "--", "bash", "-c", `[ "$GREETING" = hello ] || exit 3`)...)
		return p.ExitCode(), p.Stderr()
	}
	code, stderr := run()
	assert.Equal(t, 3, code)
	assert.Contains(t, stderr, "set in this shell, but not sent")
	for _, flag := range []string{"-xGREETING", "--env-from-shell"} {
		code, stderr = run(flag)
		assert.Zero(t, code, stderr)
		assert.NotContains(t, stderr, "set in this shell, but not sent")
	}
	// The same command line without --remote.
	code, _, stderr = f.CLI(t, "run", "-x", "GREETING=hello", "--", "bash", "-c", `[ "$GREETING" = hello ] || exit 3`)
	assert.Zero(t, code, stderr)
}
