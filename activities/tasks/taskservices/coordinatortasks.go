package taskservices

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// checkTasks refuses closures for a task that the run does not have. Tasks may be started
// outside the spec, on any host, and only the run knows all of them.
func (c *coordinators) checkTasks(ctx context.Context, by runkey.Task, closures []closure.Closure) error {
	run, err := c.runOf(by)
	if err != nil {
		return fmt.Errorf("%w (%w)", taskapi.ErrRunOver, err)
	}
	return c.tasksOf(&run).Check(ctx, closures...)
}

func (c *coordinators) tasksOf(run *Run) *closurequeue.Tasks {
	c.mu.Lock()
	defer c.mu.Unlock()
	tasks := c.tasks[run.Key]
	if tasks == nil {
		names := slices.Clone(run.Added)
		if run.Spec != nil {
			for _, t := range run.Spec.TaskList() {
				names = append(names, t.Name())
			}
		}
		tasks = closurequeue.NewTasks(func(ctx context.Context) ([]string, bool, error) { return c.askTasks(ctx, run.Key) }, names...)
		if c.tasks == nil {
			c.tasks = map[runkey.Run]*closurequeue.Tasks{}
		}
		c.tasks[run.Key] = tasks
	}
	return tasks
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
