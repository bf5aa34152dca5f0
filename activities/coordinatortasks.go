package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closure"
)

// checkTasks refuses closures for a task that the run does not have: they would wait for
// it for ever. Tasks may be started outside the spec, on any host, and only the run knows
// of all of them; where it does not answer nothing is refused.
func (c *coordinators) checkTasks(ctx context.Context, by taskapi.ID, closures []closure.Closure) error {
	var p *plan
	for i, wanted := range closures {
		if wanted.Options == nil || wanted.Options.Task == "" {
			continue
		}
		if p == nil {
			var err error
			if p, err = c.host.planOf(by); err != nil {
				return fmt.Errorf("%w (%w)", taskapi.ErrRunOver, err)
			}
		}
		name := wanted.Options.Task
		if _, ok := p.task(name); ok || c.isAdded(p, name) {
			continue
		}
		tasks, err := c.tasksOf(ctx, p)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.host.Log.Debug("a run does not say which tasks it has", zap.Error(err))
		case !slices.Contains(tasks, name):
			path := fmt.Sprintf("closures[%d].options.task", i)
			return &taskapi.QueueRefusedError{Message: closure.UnknownTask(path, name, tasks).String()}
		}
		c.isThere(p, name) // so that the run is not asked with every request
	}
	return nil
}

func (c *coordinators) tasksOf(ctx context.Context, p *plan) ([]string, error) {
	if c.host.Runs == nil {
		return nil, errors.New("this host worker asks no runs")
	}
	return c.host.Runs.Tasks(ctx, p.Run)
}

func (c *coordinators) isAdded(p *plan, task string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.added[servedKeyOf(p)][task]
	return ok
}

func (c *coordinators) isThere(p *plan, task string) {
	key := servedKeyOf(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.added == nil {
		c.added = map[servedKey]map[string]struct{}{}
	}
	if c.added[key] == nil {
		c.added[key] = map[string]struct{}{}
	}
	c.added[key][task] = struct{}{}
}
