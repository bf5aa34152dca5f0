package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// CC-30, CC-41, SEED-34: with a queue that takes two closures everything is the same, and
// schedule waits.
func TestClosuresInAQueueOfTwo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.start(&spec.RunSpec{
		AutoRestart: true, Tasks: []spec.TaskGroup{f.serving("worker", 2)}, Closures: spec.Closures{QueueSize: ptr(2)},
	})
	c := f.coordinator(run)
	f.awaitServing(c, 2)
	t.Run("CC-30 values", func(t *testing.T) { testClosureValues(t, f, run, c) })
	t.Run("CC-41 errors", func(t *testing.T) { testClosureErrors(t, f, run, c) })
	t.Run("SEED-34 schedule waits", func(t *testing.T) {
		_, err := c.Queue().Pause(bounded(t), "test")
		require.NoError(t, err)
		var values []*clustercoordinator.RemoteValue
		for i := range 2 {
			v, err := c.Schedule(bounded(t), "square", i)
			require.NoError(t, err)
			values = append(values, v)
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = c.Schedule(brief, "square", 2)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		harness.Eventually(t, "the queue is full", func() bool { return f.status(c).Counts.Queued == 2 })
		done, err := c.Done(bounded(t))
		require.NoError(t, err)
		assert.False(t, done)
		_, err = c.Queue().Resume(bounded(t))
		require.NoError(t, err)
		require.NoError(t, c.Join(bounded(t)))
		for i, v := range values {
			require.Equal(t, i*i, fetched[int](t, v))
		}
	})
	f.end(run)
}

// SEED-53, CC-71: so many times a parameter server may not answer before that is the error
// of the coordinator: as the spec says, or else the seed's variable.
func TestTransientFailures(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	variable := spec.Env{spec.EnvTransientFailures: {Value: "2"}}
	for name, test := range map[string]struct {
		env      spec.Env
		settings spec.Closures
		// ignored is how many failures are, before the one that is an error.
		ignored int
	}{
		"the default":  {nil, spec.Closures{}, 2},
		"the variable": {variable, spec.Closures{}, 1},
		"the spec":     {variable, spec.Closures{TransientFailures: ptr(4)}, 3},
		"none":         {variable, spec.Closures{TransientFailures: ptr(0)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run := f.start(&spec.RunSpec{AutoRestart: true, Tasks: []spec.TaskGroup{f.serving("worker", 1)}, Env: test.env, Closures: test.settings})
			c := f.coordinator(run)
			f.awaitServing(c, 1)
			v := schedule(t, c, "unavailable", "ps-"+run.GetID(), test.ignored)
			require.NoError(t, c.Join(bounded(t)), "so many are ignored")
			assert.Equal(t, test.ignored+1, fetched[int](t, v))
			v = schedule(t, c, "unavailable", "ps-again-"+run.GetID(), 1)
			e := closureError(t, c.Join(bounded(t)))
			assert.Equal(t, closure.ErrUnavailable, e.Kind)
			assert.Equal(t, "ps-0", e.Task)
			assert.Contains(t, e.Message, "ps-0 does not answer")
			assert.Equal(t, closure.ErrUnavailable, fetchError(t, v).Kind)
			assert.EqualValues(t, test.ignored, f.status(c).Counts.PutBack)
			f.end(run)
		})
	}
}
