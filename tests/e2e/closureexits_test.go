package e2e

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A function that exits with 0 has ended its process in the middle of a call: the task has
// failed, and is started again where tasks are.
func TestAFunctionThatExitsWithZero(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	t.Run("its task is started again", func(t *testing.T) {
		f.t = t
		run := f.serve(1)
		c := f.coordinator(run)
		assert.Equal(t, 3, fetched[int](t, schedule(t, c, "leave", "again", 2)))
		assert.Equal(t, 2, fetched[int](t, schedule(t, c, "leave", "once", 1, "os")))
		lost := scheduleCall(t, c, closure.Options{MaxLosses: ptr(1), Detached: true}, "leave", "always", 100)
		assert.Contains(t, fetchError(t, lost).Message, "worker-0")
		f.update(run, spec.UpdateTerminateAll, spec.TerminateAllRequest{})
		exits := task(f.result(run), "worker-0").Exits
		require.GreaterOrEqual(t, len(exits), 5)
		for i, want := range []string{"closure 1 of leave", "closure 1 of leave", "closure 2 of leave", "closure 3 of leave", "closure 3 of leave"} {
			assert.Equal(t, spec.CauseOrigin, exits[i].Cause)
			assert.Equal(t, want, exits[i].Call)
		}
	})
	t.Run("also where its host worker dies with it", func(t *testing.T) {
		f.t = t
		run := f.serve(1)
		c := f.coordinator(run)
		f.awaitServing(c, 1)
		assert.Equal(t, 2, fetched[int](t, schedule(t, c, "leave", "alone", 1, strconv.Itoa(f.worker.Side()))))
		f.update(run, spec.UpdateTerminateAll, spec.TerminateAllRequest{})
		exits := task(f.result(run), "worker-0").Exits
		require.Len(t, exits, 2)
		assert.Equal(t, spec.CauseOrigin, exits[0].Cause)
		assert.Equal(t, spec.UnknownCall, exits[0].Call)
	})
	t.Run("or the run fails", func(t *testing.T) {
		f.t = t
		run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{f.serving("worker", 1)}})
		c := f.coordinator(run)
		schedule(t, c, "leave", "last", 100)
		require.NoError(t, c.Queue().Flush(bounded(t)))
		r := f.result(run)
		assert.Equal(t, spec.VerdictFailed, r.Verdict)
		assert.Equal(t, 1, r.ExitCode)
		assert.Equal(t, spec.ErrUnexpectedExit, r.ErrorType)
		assert.Contains(t, r.Message, "Subprocess worker-0 exited with exit code 0 in the middle of a call, closure 1 of leave.")
	})
}
