package closurequeue

import (
	"context"
	"fmt"
	"sync"

	"github.com/clusterrun/clusterrun/workflows/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// TaskNames tells the names of a run's tasks, and whether those are all.
type TaskNames func(ctx context.Context) (names []string, complete bool, err error)

// Tasks are those of a run that closures may ask for. Closures for others are refused: they
// would wait for ever.
type Tasks struct {
	names TaskNames

	mu    sync.Mutex
	known map[string]struct{}
}

// NewTasks returns the tasks of a run, of which some may be known already. names is asked
// for others; without it any task may be there.
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

// Check refuses closures for a task that the run does not have, with a
// [closure.RefusedError]. Where the run does not answer, the task may be one that was
// started outside its spec, and nothing is refused.
func (t *Tasks) Check(ctx context.Context, closures ...closure.Closure) error {
	if t.names == nil {
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

// look reports whether the run says that it has no such task, and which it has.
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
	t.known[task] = struct{}{} // so that not every call waits for the answer
	return nil, false, nil
}
