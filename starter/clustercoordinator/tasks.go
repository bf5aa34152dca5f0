package clustercoordinator

import (
	"context"
	"sync"

	"github.com/clusterrun/clusterrun/activities/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/closure"
)

// TaskNames tells the names of a run's tasks, and whether those are all, as
// [github.com/clusterrun/clusterrun/starter.Run.TaskNames] does.
type TaskNames func(ctx context.Context) (names []string, complete bool, err error)

// tasks are those of the run, as far as somebody has asked for one.
type tasks struct {
	mu    sync.Mutex
	names TaskNames // nil: any may be there
	known map[string]struct{}
}

// KnowTasks has closures refused that only a task may call which the run does not have:
// they would wait for ever. It is called before anything is scheduled; [New] does.
func (c *Coordinator) KnowTasks(names TaskNames) { c.tasks.names = names }

// CheckTask refuses a call for a task that the run does not have, with a
// [closurequeue.RefusedError]. Where the run does not answer, the task may be one that
// was started outside its spec, and the call is fine.
func (c *Coordinator) CheckTask(ctx context.Context, call Call) error {
	if call.Options == nil || call.Options.Task == "" || c.tasks.names == nil {
		return nil
	}
	return c.tasks.check(ctx, call.Options.Task)
}

func (t *tasks) check(ctx context.Context, task string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.known[task]; ok {
		return nil
	}
	names, complete, err := t.names(ctx)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if t.known == nil {
		t.known = map[string]struct{}{}
	}
	for _, name := range names {
		t.known[name] = struct{}{}
	}
	if _, ok := t.known[task]; ok {
		return nil
	}
	if err == nil && complete {
		return &closurequeue.RefusedError{Message: closure.UnknownTask("options.task", task, names).String()}
	}
	t.known[task] = struct{}{} // so that not every call waits for the answer
	return nil
}
