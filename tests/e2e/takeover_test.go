package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// kills returns the number of times that a side is killed, from the variable KILLS.
func kills(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("KILLS"))
	if err != nil {
		return 3
	}
	t.Logf("%d kills", n)
	return n
}

// A side that was killed held the lease on every process, and perhaps the run itself. The next
// side gives them back to the server, so nothing waits for a timeout: of 20 s for a process, of
// 10 s for a workflow, and of 5 s for a cached workflow.
func TestTheNextSideTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	waited := 0
	n := kills(t)
	for i := range n {
		run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 3, `echo $$ > $DIR/up-$RANK; until [ -e $DIR/go ]; do nap; done`)}})
		for rank := range 3 {
			f.file("up-" + strconv.Itoa(rank))
		}
		side := f.worker.Side()
		require.NoError(t, syscall.Kill(side, syscall.SIGKILL))
		touch(t, f, "go")
		r := f.result(run)
		require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		text := f.timeouts(run.GetID())
		t.Logf("kill %d: waited for: %q", i, text)
		if len(text) > 0 {
			waited++
		}
		f.again("go", "up-0", "up-1", "up-2")
	}
	// A task that the server gives to a side in the milliseconds in which it dies still waits
	// for its timeout.
	assert.LessOrEqual(t, waited, n/2, "after most kills nothing waits for a timeout")
	harness.Eventually(t, "what was held is given back", func() bool {
		held := func(kind string) int {
			files, err := filepath.Glob(filepath.Join(f.worker.State, "worker", "held", "*."+kind))
			require.NoError(t, err)
			return len(files)
		}
		// The side still holds the queue of its workflows, and the lease on the host.
		return held("queue") <= 1 && held("activity") <= 1 && held("workflow") == 0
	})
}

// timeouts returns the timeouts for which the run has waited because a holder was dead.
func (f *fixture) timeouts(id string) (all []string) {
	f.t.Helper()
	for events := f.client.GetWorkflowHistory(f.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
		e, err := events.Next()
		require.NoError(f.t, err)
		if info := e.GetActivityTaskStartedEventAttributes().GetLastFailure().GetTimeoutFailureInfo(); info != nil {
			all = append(all, "activity: "+info.GetTimeoutType().String())
		}
		if a := e.GetWorkflowTaskTimedOutEventAttributes(); a.GetTimeoutType() == enumspb.TIMEOUT_TYPE_START_TO_CLOSE {
			all = append(all, "workflow task: "+a.GetTimeoutType().String())
		}
	}
	return all
}

// again is for the next kill: files are removed, and the host worker is started afresh, for
// a side that is killed again and again is started again ever later.
func (f *fixture) again(files ...string) {
	f.t.Helper()
	for _, name := range files {
		require.NoError(f.t, os.Remove(filepath.Join(f.dir, name)))
	}
	f.worker.Kill(syscall.SIGTERM)
	f.worker.ExitCode()
	f.worker.Restart()
}
