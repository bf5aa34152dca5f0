package closurequeue

import (
	"context"
	"fmt"
	"sync"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// TaskNames returns the names of a run's tasks, and whether the list is complete.
type TaskNames func(ctx context.Context) (names []string, complete bool, err error)

// Tasks are the tasks of a run that closures may ask for. Closures for other tasks are
// refused, because they would wait forever.
type Tasks struct {
	names TaskNames

	mu    sync.Mutex
	known map[string]struct{}
}

// NewTasks returns the tasks of a run, of which some may be known already. names returns the
// others; if it is nil, any task may exist.
func NewTasks(names TaskNames, known ...string) *Tasks {
	t := &Tasks{names: names, known: map[string]struct{}{}}
	t.know(known)
	return t
}

func (t *Tasks) know(names []string) {
	for _, name := range names {
		t.known[name] = struct{}{}
	}
}

// Check returns a [closure.RefusedError] for closures for a task that the run does not have.
// If the run does not answer, nothing is refused: the task may have been started outside the
// spec.
func (t *Tasks) Check(ctx context.Context, closures ...closure.Closure) error {
	if t == nil || t.names == nil {
		return nil
	}
	for i := range closures {
		o := closures[i].Options
		if o == nil || o.Task == "" {
			continue
		}
		names, missing, err := t.look(ctx, o.Task)
		if err != nil {
			return err
		}
		if missing {
			path := fmt.Sprintf("closures[%d].options.task", i)
			return &closure.RefusedError{Reason: &spec.InvalidRequestError{Problems: []spec.Problem{closure.UnknownTask(path, o.Task, names)}}}
		}
	}
	return nil
}

// look reports whether the run has no such task, and returns the tasks that it has.
func (t *Tasks) look(ctx context.Context, task string) (names []string, missing bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.known[task]; ok {
		return nil, false, nil
	}
	names, complete, err := t.names(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, false, ctx.Err()
	}
	t.know(names)
	if _, ok := t.known[task]; !ok && err == nil && complete {
		return names, true, nil
	}
	t.known[task] = struct{}{} // spares later calls the wait
	return nil, false, nil
}
