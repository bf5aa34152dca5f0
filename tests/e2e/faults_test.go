package e2e

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// until runs until a file exists, and counts its starts.
const until = `echo $$ >> $DIR/started-$CLUSTERRUN_TASK_INDEX; until [ -e $DIR/go ]; do nap; done; echo '"done"' > "$CLUSTERRUN_RESULT_FILE"`

// startedOnce checks that no program was started twice and returns its pid.
func (f *fixture) startedOnce(index int) int {
	f.t.Helper()
	lines := strings.Fields(f.file("started-" + strconv.Itoa(index)))
	require.Len(f.t, lines, 1, "started twice")
	pid := must.Get(strconv.Atoi(lines[0]))(f.t)
	return pid
}

// Processes outlive a side that hangs and is killed, except if their run was terminated during
// that time.
func TestTheTemporalSideIsKilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 3, until)}})
	terminated := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2, `echo $$ > $DIR/ends-$RANK; exec sleep 10000`)}})
	pids := []int{f.startedOnce(0), f.startedOnce(1), f.startedOnce(2)}
	f.file("ends-0")
	f.file("ends-1")
	f.alive(5)
	side := f.worker.Side()
	require.NoError(t, syscall.Kill(side, syscall.SIGSTOP))
	require.NoError(t, f.client.TerminateWorkflow(context.Background(), terminated.GetID(), terminated.GetRunID(), "test"))
	assert.Len(t, harness.Alive(f.mark), 5)
	require.NoError(t, syscall.Kill(side, syscall.SIGKILL))
	assert.ElementsMatch(t, pids, f.alive(3))
	touch(t, f, "go")
	r := f.result(run)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	for i, pid := range pids {
		assert.Equal(t, pid, f.startedOnce(i))
		assert.Equal(t, pid, r.Tasks[i].Exit.PID)
		assert.Equal(t, `"done"`, string(r.Tasks[i].Value))
	}
}

func TestTheSupervisorIsKilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2,
		`echo $$ >> $DIR/started-$CLUSTERRUN_TASK_INDEX; setsid sleep 10000 & exec sleep 10000`)}})
	f.startedOnce(0)
	f.startedOnce(1)
	f.alive(4)
	f.worker.Kill(syscall.SIGKILL)
	f.worker.ExitCode()
	f.worker.Restart()
	harness.Eventually(t, "no process is left", func() bool { return len(harness.Alive(f.mark)) == 0 })
	r := f.result(run)
	assert.Equal(t, spec.ErrHostLost, r.ErrorType, r.Message)
	for i := range r.Tasks {
		f.startedOnce(i)
	}
	assert.Equal(t, spec.CauseHostLost, r.FirstFailure.Cause)
	assert.Equal(t, 125, r.ExitCode)
}

func TestEverythingOnTheHostIsKilled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{AutoRestart: true, Tasks: []spec.TaskGroup{group("worker", 2, "(setsid sleep 10000 &); "+until)}})
	f.startedOnce(0)
	f.startedOnce(1)
	f.worker.KillWithSide()
	f.worker.ExitCode()
	// No host worker is needed for that: the guard does it.
	harness.Eventually(t, "no process is left", func() bool { return len(harness.Alive(f.mark)) == 0 })
	f.worker.Restart()
	touch(t, f, "go")
	// With auto_restart a lost process is started again, and does not count.
	r := f.result(run)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	for _, task := range r.Tasks {
		require.Len(t, task.Exits, 2, task.Name)
		assert.Equal(t, spec.CauseHostLost, task.Exits[0].Cause)
	}
}

// Processes continue while the server is away, and the run learns of those that end then.
func TestTheServerIsKilledAndRestarted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2, until)}})
	ends := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, `echo $$ >> $DIR/started-2; until [ -e $DIR/end ]; do nap; done; exit 9`)}})
	pids := []int{f.startedOnce(0), f.startedOnce(1), f.startedOnce(2)}
	f.Kill()
	touch(t, f, "end")
	assert.ElementsMatch(t, pids[:2], f.alive(2))
	f.Restart()
	touch(t, f, "go")
	r := f.result(run)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	for i, pid := range pids[:2] {
		assert.Equal(t, pid, r.Tasks[i].Exit.PID)
		assert.Equal(t, pid, f.startedOnce(i))
	}
	r = f.result(ends)
	assert.Equal(t, 9, r.ExitCode, r.Message)
	f.startedOnce(2)
}

func TestTerminatedWhileTheWorkerIsUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2, until)}})
	f.startedOnce(0)
	f.startedOnce(1)
	require.NoError(t, f.client.TerminateWorkflow(context.Background(), run.GetID(), run.GetRunID(), "test"))
	harness.Eventually(t, "the processes are gone", func() bool { return len(harness.Alive(f.mark)) == 0 })
	harness.Eventually(t, "the plan is dropped", func() bool {
		plans, _ := filepath.Glob(filepath.Join(f.worker.State, "worker", "plans", "*.json"))
		return len(plans) == 0
	})
	stderr := f.Fails(t, 125, "worker", "--state-dir", f.worker.State)
	assert.Contains(t, stderr, f.worker.State, "a second host worker on the same state is refused")
	assert.Contains(t, stderr, strconv.Itoa(f.worker.Cmd.Process.Pid))
}

func TestTheWorkerIsStopped(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2, until)}})
	f.startedOnce(0)
	f.startedOnce(1)
	f.worker.Kill(syscall.SIGTERM)
	assert.Equal(t, 0, f.worker.ExitCode())
	assert.Empty(t, harness.Alive(f.mark))
	f.worker.Restart()
	r := f.result(run)
	assert.Equal(t, spec.ErrHostLost, r.ErrorType, r.Message)
	f.startedOnce(0)
}

// A side that ends for an upgrade gives the leases on processes, and the run itself, back to the
// server, so nothing waits for a timeout.
func TestAnUpgradeWaitsForNoTimeout(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 3, `echo $$ > $DIR/up-$RANK; until [ -e $DIR/go ]; do nap; done`)}})
	for rank := range 3 {
		f.file("up-" + strconv.Itoa(rank))
	}
	code, stderr := f.worker.Upgrade()
	require.Zero(t, code, stderr)
	touch(t, f, "go")
	r := f.result(run)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	assert.Empty(t, f.timeouts(run.GetID()))
}

// timeouts returns the timeouts for which the run has waited because a holder was dead.
func (f *fixture) timeouts(id string) (all []string) {
	f.t.Helper()
	for events := f.client.GetWorkflowHistory(f.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e := must.Get(events.Next())(f.t)
		if info := e.GetActivityTaskStartedEventAttributes().GetLastFailure().GetTimeoutFailureInfo(); info != nil {
			all = append(all, "activity: "+info.GetTimeoutType().String())
		}
		if a := e.GetWorkflowTaskTimedOutEventAttributes(); a.GetTimeoutType() == enumspb.TIMEOUT_TYPE_START_TO_CLOSE {
			all = append(all, "workflow task: "+a.GetTimeoutType().String())
		}
	}
	return all
}
