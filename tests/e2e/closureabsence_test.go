package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// While no host worker executes a run, commands that wait for its queue say why, and commands
// that only ask are refused.
func TestClosureCommandsWhileNobodyExecutesTheRun(t *testing.T) {
	takesLong(t)
	t.Parallel()
	f := newFixture(t)
	// The run continues without the process that is lost.
	run := f.start(&spec.RunSpec{AutoRestart: true, Tasks: []spec.TaskGroup{group("worker", 1, until)}})
	id := run.GetID()
	f.startedOnce(0)
	code, stdout, stderr := f.CLI(t, "call", id, "square", "1")
	require.Zero(t, code, stderr)
	require.Equal(t, "1\n", stdout)

	f.worker.KillWithSide()
	f.worker.ExitCode()

	const nobody = "no host worker executes its workflow at the moment"
	waiting := f.StartCLI(t, "call", id, "square", "2")
	// Requests that change the queue may still reach it later, when there is a worker again.
	for _, args := range [][]string{{"call", "list", id}, {"call", "resume", id}, {"call", "wait", "--wait-timeout", "0", id}} {
		code, _, stderr := f.CLI(t, args...)
		assert.Equal(t, 125, code, args)
		assert.Contains(t, stderr, nobody, args)
		assert.NotContains(t, stderr, "RST_STREAM", args)
	}
	for _, args := range [][]string{{"call", "wait", id, "--wait-timeout", "8s"}, {"call", "get", id, "1", "--wait-timeout", "8s"}} {
		code, _, stderr = f.CLI(t, args...)
		assert.Equal(t, 124, code, "%s: %s", args, stderr)
		assert.Contains(t, stderr, nobody, args)
	}
	harness.Eventually(t, "who schedules is told", func() bool { return strings.Contains(waiting.Stderr(), nobody) })

	f.worker.Restart()
	require.Zero(t, waiting.ExitCode(), waiting.Stderr())
	assert.Equal(t, "2\n", waiting.Stdout())
	touch(t, f, "go")
	f.result(run)
}
