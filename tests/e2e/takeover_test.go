package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// kills is how often a side is killed: KILLS measures the median over more.
func kills(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("KILLS"))
	if err != nil {
		return 3
	}
	t.Logf("%d kills", n)
	return n
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// A side that was killed held the lease on every process, and perhaps the run itself. The
// next one gives back to the server what it held, so nothing waits for a timeout: of 20 s
// for a process, of 10 s for a workflow, and of 5 s for one that was cached.
func TestTheNextSideTakesOverAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var took []time.Duration
	waited := 0
	for i := range kills(t) {
		run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 3, `echo $$ > $DIR/up-$RANK; until [ -e $DIR/go ]; do sleep 0.05; done`)}})
		for rank := range 3 {
			f.file("up-" + strconv.Itoa(rank))
		}
		side := f.worker.Side()
		killed := time.Now()
		require.NoError(t, syscall.Kill(side, syscall.SIGKILL))
		touch(t, f, "go")
		r := f.result(run)
		took = append(took, time.Since(killed))
		require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
		text := f.timeouts(run.GetID())
		t.Logf("kill %d: ended after %s; waited for: %q", i, took[i], text)
		if len(text) > 0 {
			waited++
		}
		f.again("go", "up-0", "up-1", "up-2")
	}
	// What the server gives to a side in the milliseconds in which that dies waits all the same.
	assert.LessOrEqual(t, waited, len(took)/2, "after most kills nothing waits for a timeout")
	harness.Eventually(t, "what was held is given back", func() bool {
		held := func(kind string) int {
			files, err := filepath.Glob(filepath.Join(f.worker.State, "worker", "held", "*."+kind))
			require.NoError(t, err)
			return len(files)
		}
		// What is left is its own: the queue of its workflows, and the lease on the host.
		return held("queue") <= 1 && held("activity") <= 1 && held("workflow") == 0
	})
}

// timeouts are those that the run has waited for because whoever had something was dead.
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

// Closures that a killed side had given out go on, and those that come meanwhile do not
// wait for the lease that it held. It is measured and not asserted: what the server gives
// to a side in the milliseconds in which that dies waits for a timeout all the same.
func TestTheNextSideTakesOverClosures(t *testing.T) {
	t.Parallel()
	if os.Getenv("KILLS") == "" {
		t.Skip("KILLS says how often to kill a side")
	}
	f := newFixture(t)
	var took []time.Duration
	for i := range kills(t) {
		run := f.serve(2)
		c := f.coordinator(run)
		f.awaitServing(c, 2)
		s := f.squares(c, 1000*i, 200, 0.002)
		s.awaitCalled(20)
		side := f.worker.Side()
		killed := time.Now()
		require.NoError(t, syscall.Kill(side, syscall.SIGKILL))
		fetched[int](t, schedule(t, c, "square", 3, 0))
		took = append(took, time.Since(killed))
		t.Logf("kill %d: went on after %s", i, took[i])
		s.check(c)
		t.Logf("kill %d: all done after %s", i, time.Since(killed))
		f.end(run)
		f.again()
	}
	t.Logf("median %s", median(took))
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
