package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// upTo is a task that reports its start, and exits when a file appears.
const upTo = `echo up > $DIR/$NAME-$CLUSTERRUN_TASK; until [ -e $DIR/$NAME-end-$CLUSTERRUN_TASK ]; do nap; done`

// stopRun starts a run of such tasks and waits until they are up.
func (f *fixture) stopRun(name string, s *spec.RunSpec, tasks ...string) client.WorkflowRun {
	f.t.Helper()
	s.Env = spec.EnvOf(map[string]string{"NAME": name})
	run := f.start(s)
	for _, task := range tasks {
		f.file(name + "-" + task)
	}
	return run
}

// letEnd lets the tasks of such a run exit.
func (f *fixture) letEnd(name string, tasks ...string) {
	f.t.Helper()
	for _, task := range tasks {
		touch(f.t, f, name+"-end-"+task)
	}
}

// clusterrun runs a command that must succeed.
func (f *fixture) clusterrun(args ...string) string {
	f.t.Helper()
	stdout := f.OK(f.t, args...)
	return stdout
}

func TestStopTogether(t *testing.T) {
	t.Parallel()
	f := onSharedServer(t)
	three := []string{"worker-0", "worker-1", "ps-0"}
	groups := func() []spec.TaskGroup { return []spec.TaskGroup{group("worker", 2, upTo), group("ps", 1, upTo)} }

	t.Run("the tasks end by themselves", func(t *testing.T) {
		f.t = t
		run := f.stopRun("end", &spec.RunSpec{Tasks: groups()}, three...)
		out := f.clusterrun("stop", "--graceful", "--reason", "the machine is needed", run.GetID())
		assert.Contains(t, out, "stopping gracefully: "+run.GetID()+": an operator asked all tasks to stop: the machine is needed (")
		out = f.clusterrun("status", run.GetID())
		assert.Contains(t, out, "\nstopping together: an operator asked all tasks to stop: the machine is needed (")
		assert.Contains(t, out, " left)")
		status := must.JSON[starter.Status](t, f.clusterrun("status", "--json", run.GetID()))
		require.NotNil(t, status.Stopping)
		assert.Equal(t, 2*time.Minute, status.Stopping.Deadline.Sub(status.Stopping.Asked))
		assert.Contains(t, f.Fails(t, 125, "start", run.GetID(), "worker-7"), "the tasks are stopping gracefully; no more tasks can be started")
		for _, task := range three {
			assert.Equal(t, spec.TaskRunning, f.state(run, task))
		}
		f.letEnd("end", three...)
		r := f.result(run)
		assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		assert.Equal(t, "the machine is needed", r.Stopping.Reason)
		assert.Empty(t, r.Stragglers)
		for _, task := range r.Tasks {
			assert.Equal(t, spec.CauseCompleted, task.Exit.Cause, task.Name)
		}
		assert.Contains(t, f.clusterrun("status", run.GetID()), "An operator asked all tasks to stop: the machine is needed")
		assert.Contains(t, f.Fails(t, 125, "stop", "--graceful", run.GetID()), "has ended")
	})

	t.Run("stragglers are named and stopped", func(t *testing.T) {
		f.t = t
		run := f.stopRun("late", &spec.RunSpec{Tasks: groups(), StopTogether: spec.StopTogether{Grace: spec.DurationOf(300 * time.Millisecond)}}, three...)
		f.letEnd("late", "worker-0")
		harness.Eventually(t, "worker-0 has ended", func() bool { return f.state(run, "worker-0") == spec.TaskEnded })
		out := f.clusterrun("stop", "--graceful", "--wait", "--json", run.GetID())
		assert.Contains(t, out, `"stopped"`)
		code, stdout, stderr := f.CLI(t, "wait", run.GetID())
		assert.Equal(t, 124, code, stdout+stderr)
		assert.Contains(t, stderr, ": Coordinator stopped with tasks still running: worker-1 ps-0\n  An operator asked all tasks to stop\n")
		assert.Regexp(t, `\n  1 of 3 \(rank 0\) +has ended\n`, stderr)
		assert.Contains(t, stderr, "\n  Stacks of worker-1: /")
		r := f.result(run)
		assert.Equal(t, spec.VerdictTimedOut, r.Verdict)
		assert.Equal(t, spec.ErrSubprocessTimeout, r.ErrorType)
		assert.Equal(t, []string{"worker-1", "ps-0"}, r.Stragglers)
		assert.Equal(t, spec.CauseCollateral, task(r, "ps-0").Exit.Cause)
		assert.FileExists(t, task(r, "worker-1").StacksFile)
		assert.Empty(t, harness.Alive(f.mark))
	})

}
