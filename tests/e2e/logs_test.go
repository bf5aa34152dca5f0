package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func linesWith(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

func TestLogs(t *testing.T) {
	t.Parallel()
	l := newLocal(t)
	code, _, stderr := l.run("run", "--id", "iris", "--auto-restart", "--max-restarts", "3", "--log-dir", l.home+"/elsewhere",
		"--task", "worker=2", "--task", "ps=1", "--", "bash", "-c",
		`echo out $CLUSTERRUN_TASK; echo err $CLUSTERRUN_TASK >&2; [ $CLUSTERRUN_TASK != worker-1 ] || [ $CLUSTERRUN_RESTART_COUNT = 2 ] || exit 1; printf unfinished`)
	require.Zero(t, code, stderr)
	logs := func(args ...string) (stdout, stderr []string) {
		t.Helper()
		out, errs := l.succeeds(append([]string{"logs", "iris"}, args...)...)
		return linesWith(out), linesWith(errs)
	}

	t.Run("everything", func(t *testing.T) {
		out, errs := logs()
		assert.Len(t, out, 5+3)
		assert.Len(t, errs, 5)
	})
	t.Run("a task and a stream", func(t *testing.T) {
		out, errs := logs("worker-0", "--stderr")
		assert.Empty(t, out)
		assert.Equal(t, []string{"[worker-0]:    err worker-0"}, errs)
	})
}

// Logs can start at a given time, using the host's heartbeat notes, and a run can be followed
// before it writes anything.
func TestLogsOfALivingRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Logs: spec.Logs{Dir: f.dir + "/logs"}, Tasks: []spec.TaskGroup{group("worker", 1,
		`echo one; until [ -e $DIR/go ]; do nap; done; echo two; until [ -e $DIR/end ]; do nap; done`)}})
	follow := f.StartCLI(t, "logs", "-f", run.GetID())
	harness.Eventually(t, "the times are noted", func() bool {
		files, _ := filepath.Glob(filepath.Join(f.dir, "logs", "*", "*", "attempt_0", "0", "times"))
		return len(files) == 1
	})
	since := time.Now().Format(time.RFC3339Nano)
	touch(t, f, "go")
	harness.Eventually(t, "the second line is followed", func() bool {
		return follow.Stdout() == "[worker-0]:    one\n[worker-0]:    two\n"
	})
	assert.Equal(t, "[worker-0]:    two\n", f.OK(t, "logs", run.GetID(), "--since", since))
	touch(t, f, "end")
	assert.Zero(t, follow.ExitCode(), follow.Stderr())
	f.result(run)
	_, stdout, _ := f.CLI(t, "logs", run.GetID(), "--since", since)
	assert.Equal(t, "[worker-0]:    two\n", stdout, "the run has ended")
}
