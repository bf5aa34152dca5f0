package e2e

import (
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// until waits until a file exists, and counts its starts.
const until = `echo $$ >> $DIR/started-$CLUSTERRUN_TASK_INDEX; until [ -e $DIR/go ]; do nap; done; echo '"done"' > "$CLUSTERRUN_RESULT_FILE"`

// startedOnce checks that no program started twice and returns its pid.
func (f *fixture) startedOnce(index int) int {
	f.t.Helper()
	lines := strings.Fields(f.file("started-" + strconv.Itoa(index)))
	require.Len(f.t, lines, 1, "started twice")
	pid := must.Get(strconv.Atoi(lines[0]))(f.t)
	return pid
}

// A host worker that is stopped stops its tasks. Two with the same name would share tasks pinned to
// it, so the second is refused while the first is alive.
func TestTheWorkerIsStopped(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stderr := f.Fails(t, 125, "worker", "--state-dir", t.TempDir(), "--host-name", f.worker.Host)
	assert.Contains(t, stderr, ") already serves queue clusterrun as host host-a")
	assert.Contains(t, stderr, "--host-name")
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

	f.worker.Kill(syscall.SIGKILL)
	f.worker.ExitCode()
	harness.Eventually(t, "its side is gone", func() bool { return len(harness.Alive(f.worker.State)) == 0 })
	f.worker = f.StartWorker(t)
	r = f.result(f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 1, "true")}}))
	assert.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
}

// timeouts returns the timeouts that the run waited for because a holder was dead.
func timeouts(t *testing.T, c client.Client, id string) (all []string) {
	t.Helper()
	for events := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e := must.Get(events.Next())(t)
		if info := e.GetActivityTaskStartedEventAttributes().GetLastFailure().GetTimeoutFailureInfo(); info != nil {
			all = append(all, "activity: "+info.GetTimeoutType().String())
		}
		if a := e.GetWorkflowTaskTimedOutEventAttributes(); a.GetTimeoutType() == enumspb.TIMEOUT_TYPE_START_TO_CLOSE {
			all = append(all, "workflow task: "+a.GetTimeoutType().String())
		}
	}
	return all
}
