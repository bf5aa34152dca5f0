package e2e

import (
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

// A side that exits for an upgrade returns the leases on processes, and the run itself, to the
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

// timeouts returns the timeouts that the run waited for because a holder was dead.
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
