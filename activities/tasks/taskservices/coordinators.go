package taskservices

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// queue returns the queue of a task's run. It waits until the host worker has connected to the
// server.
func (c *Config) queue(ctx context.Context, by runkey.Task) (closurequeue.Queue, error) {
	run, err := c.runOf(by)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", closurequeue.ErrRunEnded, err)
	}
	for again := askAgain; ; {
		q, err := c.Queues(run.ofQueue())
		if err != nil {
			if again.Sleep(ctx) != nil {
				return nil, err
			}
			continue
		}
		q.Warn = func(err error) {
			c.Log.Warn("a request to the call queue keeps failing; retrying", zap.String("queue", q.ID()), zap.Error(err))
		}
		q.Opening = func() (closure.QueueInput, error) {
			run, err := c.Plans.Run(by.Run)
			if err != nil {
				return closure.QueueInput{}, err
			}
			c.noteQueue(&run) // the run closes only a recorded queue
			return c.queueInput(&run), nil
		}
		return q, nil
	}
}
