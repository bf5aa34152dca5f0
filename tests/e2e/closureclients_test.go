package e2e

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// A join of which nobody hears the answer keeps nobody from anything: not from
// scheduling, and not from hearing of errors.
func TestAJoinThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.serve(2)
	c := f.coordinator(run)
	f.awaitServing(c, 2)
	held := schedule(t, c, "hold", "held")
	f.called("hold held", 1)

	// One takes its join back in time, the other cannot.
	code, _, stderr := f.CLI(t, "join", run.GetID(), "--timeout", "1s")
	assert.NotZero(t, code)
	assert.NotEmpty(t, stderr)
	require.Equal(t, 1, f.accepted(c, closure.UpdateWithdraw))
	killed := f.StartCLI(t, "join", run.GetID())
	harness.Eventually(t, "the join waits", func() bool { return f.accepted(c, closure.UpdateJoin) == 2 })
	killed.Kill(syscall.SIGKILL)

	assert.Equal(t, 49, fetched[int](t, schedule(t, c, "square", 7)))
	assert.Equal(t, "on purpose", fetchError(t, schedule(t, c, "fail")).Message)
	// The join of nobody is the oldest that asks, and has the others cancelled.
	assert.Equal(t, closure.ErrCancelled, fetchError(t, held).Kind)
	require.Contains(t, closureError(t, c.Join(bounded(t))).Message, "on purpose")
	require.NoError(t, c.Join(bounded(t)))
	assert.Equal(t, 64, fetched[int](t, schedule(t, c, "square", 8)))
	f.end(run)
}
