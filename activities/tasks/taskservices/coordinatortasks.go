package taskservices

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
)

// tasksOf returns the tasks of a run that closures may ask for. Tasks may be started outside
// the spec, on any host, and only the run knows all of them.
func (c *coordinators) tasksOf(run *Run) *closurequeue.Tasks {
	names := slices.Clone(run.Added)
	if run.Spec != nil {
		for _, t := range run.Spec.TaskList() {
			names = append(names, t.Name())
		}
	}
	key := run.Key
	return closurequeue.NewTasks(func(ctx context.Context) ([]string, bool, error) { return c.askTasks(ctx, key) }, names...)
}

// askTasks asks the run for its tasks.
func (c *coordinators) askTasks(ctx context.Context, run runkey.Run) ([]string, bool, error) {
	if c.Runs == nil {
		return nil, false, errors.New("this host worker sends no requests to runs")
	}
	names, err := c.Runs.Tasks(ctx, run)
	if err != nil {
		c.Log.Debug("a run did not list its tasks", zap.Error(err))
	}
	return names, true, err
}
