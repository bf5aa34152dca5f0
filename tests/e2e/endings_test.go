package e2e

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Runs end with the right result with real processes, in the cases of the behaviours with these
// IDs. The rules themselves are tested by the scripts of package lifecycle.
func TestEndings(t *testing.T) {
	t.Parallel()
	f := newFixture(t)

	t.Run("MPR-01 every task returns its value", func(t *testing.T) {
		f.t = t
		script := `echo "\"$CLUSTERRUN_TASK_TYPE\"" > "$CLUSTERRUN_RESULT_FILE"`
		r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{
			group("chief", 1, script), group("worker", 2, script), group("ps", 3, script),
		}}))
		require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		values := map[string]int{}
		for _, task := range r.Tasks {
			values[string(task.Value)]++
		}
		assert.Equal(t, map[string]int{`"chief"`: 1, `"worker"`: 2, `"ps"`: 3}, values)
	})

	t.Run("MPR-02 a reported error is the run's", func(t *testing.T) {
		f.t = t
		script := `echo '{"message": {"message": "ValueError: This is an error.", "extraInfo": {"py_callstack": "", "timestamp": "10"}}}' > "$CLUSTERRUN_ERROR_FILE"; exit 1`
		r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, script), group("ps", 1, script)}}))
		assert.Equal(t, spec.ErrSubprocess, r.ErrorType)
		assert.Contains(t, r.Message, "This is an error.")
		assert.Equal(t, 1, r.ExitCode)
	})

	t.Run("MPR-14 D-01 death by a signal is an error", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, `kill -SEGV $$`)}}))
		assert.Equal(t, spec.ErrUnexpectedExit, r.ErrorType)
		assert.Contains(t, r.Message, "Subprocess worker-0 exited with exit code")
		assert.Contains(t, r.Message, "SIGSEGV")
		assert.Equal(t, 128+11, r.ExitCode)
	})

	t.Run("MPR-15 D-02 a chief dead by a signal ends the run", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{
			ChiefGrace: spec.DurationOf(0),
			Tasks:      []spec.TaskGroup{group("chief", 1, `kill -SEGV $$`), group("worker", 1, `sleep 10000`)},
		}))
		assert.Contains(t, r.Message, "Subprocess chief-0 exited with exit code")
		assert.Equal(t, spec.CauseCollateral, task(r, "worker-0").Exit.Cause)
		assert.Equal(t, "chief-0", r.FirstFailure.Task)
	})

	t.Run("MPR-16 SEED-16 the chief's exit code is the run's", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("chief", 1, `exit 20`), group("worker", 1, `sleep 10000`)}}))
		assert.Contains(t, r.Message, "Subprocess chief-0 exited with exit code 20")
		assert.Equal(t, 20, r.ExitCode)
	})

	t.Run("MPR-17 a worker's exit code is the run's", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, `echo why >&2; exit 10`)}}))
		assert.Contains(t, r.Message, "Subprocess worker-0 exited with exit code 10")
		assert.Contains(t, r.FirstFailure.Message, "why")
		assert.Equal(t, 10, r.ExitCode)
	})

	t.Run("MPR-18 auto restart", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{AutoRestart: true, Tasks: []spec.TaskGroup{group("worker", 1,
			`echo x >> $DIR/mpr18; [ $(wc -l < $DIR/mpr18) -ge 2 ]`)}}))
		require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		assert.Equal(t, 1, task(r, "worker-0").Restarts)
		assert.Equal(t, "x\nx\n", f.file("mpr18"))
	})

	t.Run("MPR-19 a task's own error beats the timeout", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{AutoRestart: true, GiveUpOnSameError: ptr(0), Timeout: spec.DurationOf(4 * time.Second), Tasks: []spec.TaskGroup{group("worker", 1,
			`echo Running >> $DIR/mpr19; sleep 0.5; echo '{"message": "boom"}' > "$CLUSTERRUN_ERROR_FILE"; exit 1`)}}))
		assert.Equal(t, spec.ErrSubprocess, r.ErrorType, r.Message)
		assert.Contains(t, r.Message, "boom")
		assert.Greater(t, len(f.file("mpr19")), len("Running\n"))
	})

	t.Run("MPR-20 nothing is restarted once the chief is done", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{AutoRestart: true, Tasks: []spec.TaskGroup{
			group("chief", 1, `sleep 1`),
			group("worker", 1, `sleep 1; echo '{"message": "worker failed"}' > "$CLUSTERRUN_ERROR_FILE"; exit 1`),
		}}))
		assert.Equal(t, spec.ErrSubprocess, r.ErrorType, r.Message)
		assert.Contains(t, r.Message, "worker failed")
	})

	t.Run("MPR-13 SEED-19 timeout", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{Timeout: spec.DurationOf(time.Second), ReturnOutput: true,
			Tasks: []spec.TaskGroup{group("worker", 1, `echo before the timeout; sleep 10000`)}}))
		assert.Equal(t, spec.VerdictTimedOut, r.Verdict)
		assert.Equal(t, spec.ErrSubprocessTimeout, r.ErrorType)
		assert.Equal(t, 124, r.ExitCode)
		assert.Equal(t, []string{"[worker-0]:    before the timeout"}, r.Output)
	})

	t.Run("D-03 max run time is hard", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{MaxRunTime: spec.DurationOf(time.Second),
			Tasks: []spec.TaskGroup{group("worker", 1, `trap '' TERM; while :; do nap; done`)}}))
		assert.Equal(t, spec.ErrUnexpectedExit, r.ErrorType, r.Message)
		assert.Contains(t, r.Message, "1s")
		assert.Equal(t, 124, r.ExitCode)
		assert.Equal(t, "SIGKILL", task(r, "worker-0").Exit.Signal)
	})

	t.Run("a process that ignores SIGTERM is killed after the grace", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{ChiefGrace: spec.DurationOf(0), Stop: spec.Stop{Grace: spec.DurationOf(500 * time.Millisecond)},
			Tasks: []spec.TaskGroup{
				group("chief", 1, `until [ -e $DIR/ignoring ]; do nap; done`),
				group("worker", 1, `trap '' TERM; touch $DIR/ignoring; while :; do nap; done`),
			}}))
		require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		assert.Equal(t, "SIGKILL", task(r, "worker-0").Exit.Signal)
		assert.Equal(t, spec.CauseCollateral, task(r, "worker-0").Exit.Cause)
	})

	t.Run("a stopped process can still act on SIGTERM", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{ChiefGrace: spec.DurationOf(0), Tasks: []spec.TaskGroup{
			group("chief", 1, `until grep -q T /proc/$(cat $DIR/frozen 2>/dev/null)/stat 2>/dev/null; do nap; done`),
			group("worker", 1, `trap 'echo done > $DIR/acted; exit 0' TERM; echo $$ > $DIR/frozen; kill -STOP $$; while :; do nap; done`),
		}}))
		require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		assert.Equal(t, "done\n", f.file("acted"))
	})

	t.Run("a daemon does not outlive its task", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1,
			`(setsid sleep 10000 </dev/null >/dev/null 2>&1 &) ; sleep 0.2`)}}))
		require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		assert.Empty(t, harness.Alive(f.mark))
	})

	t.Run("on_failure continue lets the others finish", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{OnFailure: spec.OnFailureContinue, Tasks: []spec.TaskGroup{
			group("worker", 2, `[ $CLUSTERRUN_TASK_INDEX = 1 ] || exit 3; sleep 1; echo ok > $DIR/finished`)}}))
		assert.Equal(t, 3, r.ExitCode)
		assert.Equal(t, "ok\n", f.file("finished"))
	})

	t.Run("a result that is not JSON fails the run", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, `echo not json > "$CLUSTERRUN_RESULT_FILE"`)}}))
		assert.Equal(t, spec.VerdictFailed, r.Verdict)
		assert.Contains(t, r.Message, "JSON")
	})

	t.Run("a result of 10 MiB stays in its file", func(t *testing.T) {
		f.t = t
		r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, `head -c 10485760 /dev/zero | tr '\0' 1 > "$CLUSTERRUN_RESULT_FILE"`)}}))
		require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		assert.Empty(t, r.Tasks[0].Value)
		info := must.Get(os.Stat(r.Tasks[0].Exit.ValueFile))(t)
		assert.Equal(t, int64(10<<20), info.Size())
	})
}

// The report distinguishes a failure among many tasks from the tasks that it stopped.
func TestAThousandTasks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1000, `[ $RANK != 777 ] || exit 9; exec sleep 10000`)}}))
	assert.Equal(t, 9, r.ExitCode, r.Message)
	assert.Equal(t, "worker-777", r.FirstFailure.Task)
	stopped := 0
	for _, task := range r.Tasks {
		if task.Exit != nil && task.Exit.Cause == spec.CauseCollateral {
			stopped++
		}
	}
	assert.Positive(t, stopped)
	require.Len(t, r.Tasks, 1000)
	assert.Empty(t, harness.Alive(f.mark))
}
