package taskservices

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closure"
)

// checkTasks refuses closures for a task that the run does not have: they would wait for
// it for ever. Tasks may be started outside the spec, on any host, and only the run knows
// of all of them; where it does not answer nothing is refused.
func (c *coordinators) checkTasks(ctx context.Context, by taskapi.ID, closures []closure.Closure) error {
	var run *Run
	for i, wanted := range closures {
		if wanted.Options == nil || wanted.Options.Task == "" {
			continue
		}
		if run == nil {
			r, err := c.runOf(by)
			if err != nil {
				return fmt.Errorf("%w (%w)", taskapi.ErrRunOver, err)
			}
			run = &r
		}
		name := wanted.Options.Task
		if run.hasTask(name) || c.isAdded(run, name) {
			continue
		}
		tasks, err := c.tasksOf(ctx, run)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.Log.Debug("a run does not say which tasks it has", zap.Error(err))
		case !slices.Contains(tasks, name):
			path := fmt.Sprintf("closures[%d].options.task", i)
			return &taskapi.QueueRefusedError{Message: closure.UnknownTask(path, name, tasks).String()}
		}
		c.isThere(run, name) // so that the run is not asked with every request
	}
	return nil
}

func (c *coordinators) tasksOf(ctx context.Context, run *Run) ([]string, error) {
	if c.Runs == nil {
		return nil, errors.New("this host worker asks no runs")
	}
	return c.Runs.Tasks(ctx, run.RunKey)
}

func (c *coordinators) isAdded(run *Run, task string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.added[run.RunKey][task]
	return ok
}

func (c *coordinators) isThere(run *Run, task string) {
	key := run.RunKey
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.added == nil {
		c.added = map[supervisor.RunKey]map[string]struct{}{}
	}
	if c.added[key] == nil {
		c.added[key] = map[string]struct{}{}
	}
	c.added[key][task] = struct{}{}
}
