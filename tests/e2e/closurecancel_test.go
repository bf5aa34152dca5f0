package e2e

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A closure that is cancelled ends, whenever that is and whatever it does, and nobody hangs.
func TestCancelledClosures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.serve(2)
	c := f.coordinator(run)
	f.awaitServing(c, 2)
	cancel := func(t *testing.T, values ...*clustercoordinator.RemoteValue) {
		t.Helper()
		var ids []uint64
		for _, v := range values {
			id, err := v.ID(bounded(t))
			require.NoError(t, err)
			ids = append(ids, id)
		}
		_, err := c.Queue().Cancel(bounded(t), ids...)
		require.NoError(t, err)
	}
	cancelled := func(t *testing.T, v *clustercoordinator.RemoteValue) {
		t.Helper()
		assert.Equal(t, closure.ErrCancelled, fetchError(t, v).Kind)
	}
	t.Run("as soon as it is scheduled", func(t *testing.T) {
		for i := range 100 {
			v := schedule(t, c, "hold", fmt.Sprint("at-once-", i))
			cancel(t, v)
			cancelled(t, v)
		}
		require.NoError(t, c.Join(bounded(t)))
	})
	t.Run("while the host worker is away", func(t *testing.T) {
		var values []*clustercoordinator.RemoteValue
		for i := range 4 {
			values = append(values, schedule(t, c, "hold", fmt.Sprint("away-", i)))
		}
		f.called("hold away-0", 1)
		f.called("hold away-1", 1)
		before := f.servers("")
		side := f.worker.Side()
		require.NoError(t, syscall.Kill(side, syscall.SIGKILL))
		cancel(t, values...)
		for _, v := range values {
			cancelled(t, v)
		}
		require.NoError(t, c.Join(bounded(t)))
		assert.ElementsMatch(t, before, f.servers(""), "the functions have ended, and not their processes")
		for i := range 2 {
			assert.Equal(t, 1, f.calls()[fmt.Sprint("hold away-", i)])
		}
	})
	t.Run("one that does not end", func(t *testing.T) {
		v := schedule(t, c, "stubborn", "x")
		f.called("stubborn x", 1)
		before := f.servers("")
		schedule(t, c, "fail")
		require.ErrorContains(t, c.Join(bounded(t)), "on purpose")
		cancelled(t, v)
		harness.Eventually(t, "one process is another", func() bool {
			now := f.servers("")
			same := 0
			for _, pid := range now {
				for _, old := range before {
					if pid == old {
						same++
					}
				}
			}
			return len(now) == 2 && same == 1
		})
		assert.Equal(t, 1, f.calls()["stubborn x"])
		assert.Equal(t, 9, fetched[int](t, schedule(t, c, "square", 3)))
		require.NoError(t, c.Join(bounded(t)))
	})
	t.Run("a child has the connections of one that died", func(t *testing.T) {
		v := scheduleCall(t, c, closure.Options{MaxLosses: ptr(0)}, "leave_a_child")
		e := fetchError(t, v)
		assert.Equal(t, closure.ErrQuarantined, e.Kind)
		assert.Contains(t, e.Message, "1 process ended under it")
		require.Error(t, c.Join(bounded(t)))
	})
	t.Run("connections are cut in the middle of answers", func(t *testing.T) {
		var squares, cuts []*clustercoordinator.RemoteValue
		for i := range 200 {
			if i%20 == 0 {
				cuts = append(cuts, schedule(t, c, "cut_off"))
			}
			squares = append(squares, schedule(t, c, "square", 7))
		}
		require.NoError(t, c.Join(bounded(t)))
		for _, v := range squares {
			assert.Equal(t, 49, fetched[int](t, v))
		}
		cut := 0
		for _, v := range cuts {
			cut += fetched[int](t, v)
		}
		assert.Positive(t, cut)
	})
	f.update(run, spec.UpdateTerminateAll, spec.TerminateAllRequest{})
	f.result(run)
}
