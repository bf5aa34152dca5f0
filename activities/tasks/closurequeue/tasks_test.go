package closurequeue

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

func on(task string) closure.Closure {
	return closure.Closure{Function: "same", Args: []byte("[1]"), Options: &closure.Options{Task: task}}
}

// A task may be started outside the spec of the run, even later. A closure for an unknown
// task is refused, and the run is asked only about tasks that are not known yet.
func TestOnlyTasksOfTheRunAreAskedFor(t *testing.T) {
	names, asked := []string{"worker-0"}, 0
	tasks := NewTasks(func(context.Context) ([]string, bool, error) { asked++; return names, true, nil }, "chief-0")
	require.NoError(t, tasks.Check(patience(t), newClosure("same"), on("chief-0")))
	assert.Zero(t, asked)
	err := tasks.Check(patience(t), on("chief-0"), on("worker-1"))
	var refused *closure.RefusedError
	require.ErrorAs(t, err, &refused)
	require.EqualError(t, err, `closures[1].options.task: the run has no task "worker-1"; it has worker-0`)
	require.NoError(t, tasks.Check(patience(t), on("worker-0")))
	assert.Equal(t, 1, asked)
	names = append(names, "worker-1")
	require.NoError(t, tasks.Check(patience(t), on("worker-1")))
	require.NoError(t, tasks.Check(patience(t), on("worker-1")))
	assert.Equal(t, 2, asked)
}

// If the run does not say which tasks it has, no closure is refused.
func TestTheRunDoesNotSayItsTasks(t *testing.T) {
	for name, says := range map[string]TaskNames{
		"not all":  func(context.Context) ([]string, bool, error) { return []string{"worker-0"}, false, nil },
		"an error": func(context.Context) ([]string, bool, error) { return nil, false, errors.New("away") },
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			tasks := NewTasks(func(ctx context.Context) ([]string, bool, error) { asked++; return says(ctx) })
			require.NoError(t, tasks.Check(patience(t), on("worker-9")))
			require.NoError(t, tasks.Check(patience(t), on("worker-9")))
			assert.Equal(t, 1, asked)
			over, cancel := context.WithCancel(patience(t))
			cancel()
			tasks = NewTasks(func(ctx context.Context) ([]string, bool, error) { return nil, false, ctx.Err() })
			require.ErrorIs(t, tasks.Check(over, on("worker-10")), context.Canceled)
		})
	}
}

// A closure that is refused is not in the queue, and affects no other closure.
func TestAClosureForATaskThatIsNotThere(t *testing.T) {
	f := newFixture(t)
	f.tasks = NewTasks(func(context.Context) ([]string, bool, error) { return []string{"worker-0"}, true, nil })
	_, err := f.Schedule(patience(t), on("worker-1"))
	require.EqualError(t, err, `options.task: the run has no task "worker-1"; it has worker-0`)
	assert.Zero(t, f.Counts().Scheduled)
	require.NoError(t, f.Join(patience(t)), "whoever has scheduled it knows")
}
