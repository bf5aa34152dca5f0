package clustercoordinator

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/closure"
)

func on(task string) Call {
	return Call{Function: "same", Args: []any{1}, Options: &closure.Options{Task: task}}
}

// A task may be started outside the spec of the run, also later; one that is not there
// is refused, and the run is asked only for those that were not there before.
func TestOnlyTasksOfTheRunAreAskedFor(t *testing.T) {
	f := newFixture(t)
	names, asked := []string{"worker-0"}, 0
	f.KnowTasks(func(context.Context) ([]string, bool, error) { asked++; return names, true, nil })
	require.NoError(t, f.CheckTask(patience(t), Call{Function: "same"}))
	assert.Zero(t, asked)
	_, err := f.ScheduleCall(patience(t), on("worker-1"))
	var refused *closurequeue.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, `options.task: the run has no task "worker-1"; it has worker-0`, refused.Message)
	assert.Zero(t, f.Counts().Scheduled)
	require.NoError(t, f.Join(patience(t)), "whoever has scheduled it knows")
	require.NoError(t, f.CheckTask(patience(t), on("worker-0")))
	assert.Equal(t, 1, asked)
	names = append(names, "worker-1")
	require.NoError(t, f.CheckTask(patience(t), on("worker-1")))
	require.NoError(t, f.CheckTask(patience(t), on("worker-1")))
	assert.Equal(t, 2, asked)
}

// Where the run does not say which tasks it has, nothing is refused.
func TestTheRunDoesNotSayItsTasks(t *testing.T) {
	for name, says := range map[string]TaskNames{
		"not all":  func(context.Context) ([]string, bool, error) { return []string{"worker-0"}, false, nil },
		"an error": func(context.Context) ([]string, bool, error) { return nil, false, errors.New("away") },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			asked := 0
			f.KnowTasks(func(ctx context.Context) ([]string, bool, error) { asked++; return says(ctx) })
			require.NoError(t, f.CheckTask(patience(t), on("worker-9")))
			require.NoError(t, f.CheckTask(patience(t), on("worker-9")))
			assert.Equal(t, 1, asked)
			over, cancel := context.WithCancel(patience(t))
			cancel()
			f.KnowTasks(func(ctx context.Context) ([]string, bool, error) { return nil, false, ctx.Err() })
			require.ErrorIs(t, f.CheckTask(over, on("worker-10")), context.Canceled)
		})
	}
}
