package clustercoordinator

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// SEED-44: a value, or an error, is READY.
func TestStates(t *testing.T) {
	f := newFixture(t)
	waits := f.schedule("wait")
	assert.Equal(t, NotReady, waits.State())
	close(f.release)
	require.NoError(t, f.Join(patience(t)))
	assert.Equal(t, Ready, waits.State())
	fails := f.schedule("fails")
	require.EqualError(t, f.Join(patience(t)), "no")
	assert.Equal(t, Ready, fails.State())
	refused := f.schedule("nobody has this")
	<-refused.Done()
	assert.Equal(t, Ready, refused.State(), "it is known that it was not called")
	_, err := refused.JSON(patience(t))
	require.ErrorContains(t, err, "no task has registered")
}

// SEED-43, SEED-44: the result of an aborted closure is never known.
func TestAborted(t *testing.T) {
	const text = "CancelledError: " + closure.TextAborted
	t.Run("the run has ended", func(t *testing.T) {
		f := newFixture(t)
		require.NoError(t, f.Join(patience(t)))
		f.Away(true)
		v := f.schedule("same", 1)
		f.Server.End("over")
		f.Away(false)
		_, err := v.JSON(patience(t))
		require.EqualError(t, err, text+" ("+closurequeue.ErrRunEnded.Error()+")")
		require.ErrorIs(t, err, closurequeue.ErrRunEnded)
		var said *closure.Error
		require.ErrorAs(t, err, &said)
		assert.Equal(t, closure.ErrCancelled, said.Kind)
		assert.Equal(t, Aborted, v.State())
		_, err = Fetch(patience(t), map[string]any{"v": v})
		require.ErrorAs(t, err, &said)
	})
	t.Run("the coordinator was closed", func(t *testing.T) {
		f := newFixture(t)
		v := f.schedule("wait")
		id := must.Get(v.ID(patience(t)))(t)
		f.Close()
		_, err := Get[string](patience(t), v)
		require.EqualError(t, err, text+" (the coordinator was closed)")
		assert.Equal(t, Aborted, v.State())
		var said *closure.Error
		require.ErrorAs(t, err, &said)
		assert.Equal(t, id, said.Closure)
	})
	t.Run("cancelled is not aborted", func(t *testing.T) {
		f := newFixture(t)
		v := f.schedule("wait")
		id := must.Get(v.ID(patience(t)))(t)
		_, err := f.Queue().Cancel(patience(t), id)
		require.NoError(t, err)
		_, err = v.JSON(patience(t))
		require.EqualError(t, err, "CancelledError: "+closure.TextCancelled)
		assert.Equal(t, Ready, v.State())
	})
}

// A wait that is given up does not change the state of the value.
func TestGivenUp(t *testing.T) {
	f := newFixture(t)
	v := f.schedule("wait")
	ctx, cancel := context.WithCancel(patience(t))
	cancel()
	_, err := v.JSON(ctx)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, NotReady, v.State())
}
