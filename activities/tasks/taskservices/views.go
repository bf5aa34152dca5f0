package taskservices

import (
	"maps"
	"sync"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
)

// views holds the tasks' views of the cluster. All tasks of a generation share one, because it is
// large in a large run.
type views struct {
	mu  sync.Mutex
	all map[viewKey]*taskapi.View
}

type viewKey struct {
	run        runkey.Run
	generation int
	// alone names the task with its own view, or empty for the shared view.
	alone string
}

// of returns a task's view, and drops the views of earlier generations.
func (v *views) of(t Served) *taskapi.View {
	k := viewKey{run: t.Key.Run, generation: t.Key.Generation}
	if t.Alone {
		k.alone = t.Key.Task
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if known := v.all[k]; known != nil {
		return known
	}
	maps.DeleteFunc(v.all, func(o viewKey, _ *taskapi.View) bool { return o.run == k.run && o.generation < k.generation })
	if v.all == nil {
		v.all = map[viewKey]*taskapi.View{}
	}
	v.all[k] = t.View()
	return v.all[k]
}

// forget drops a run's views.
func (v *views) forget(run runkey.Run) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.all, func(k viewKey, _ *taskapi.View) bool { return k.run == run })
}
