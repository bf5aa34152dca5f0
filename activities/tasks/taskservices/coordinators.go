package taskservices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// coordinators have the queues of runs, for the tasks that schedule closures. They keep only
// news that was read ahead. Everything else is in the queues and in the processes, so another
// host worker can continue.
type coordinators struct {
	Config
	group *background.Group

	mu  sync.Mutex
	all map[runkey.Run]*closurequeue.Client
}

// queue returns the queue of the run of a task. It waits until the host worker has connected to
// the server.
func (c *coordinators) queue(ctx context.Context, by runkey.Task) (*closurequeue.Client, error) {
	run, err := c.runOf(by)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", closurequeue.ErrRunEnded, err)
	}
	for again := askAgain; ; {
		q, err := c.queueHere(&run)
		if err == nil || again.Sleep(ctx) != nil {
			return q, err
		}
	}
}

func (c *coordinators) queueHere(run *Run) (*closurequeue.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.all[run.Key]; q != nil {
		return q, nil
	}
	q, err := c.Queues(run.ofQueue())
	if err != nil {
		return nil, err
	}
	q.Warn = func(request string, err error) {
		c.Log.Warn("a request to the call queue keeps failing; retrying",
			zap.String("queue", q.ID()), zap.String("request", request), zap.Error(err))
	}
	key := run.Key
	q.Opening = func(task string) (closure.QueueInput, error) {
		run, err := c.Plans.Run(key)
		if err != nil {
			return closure.QueueInput{}, err
		}
		// The run ends its queue only if it knows about the queue.
		c.noteQueue(&run)
		c.noteCoordinator(&run, task)
		return c.queueInput(&run), nil
	}
	if c.all == nil {
		c.all = map[runkey.Run]*closurequeue.Client{}
	}
	c.all[key] = q
	return q, nil
}

// taskEnded releases the resources that a task has created, after it has ended for good with
// the process of that number. It does so even if the task scheduled closures through an earlier
// host worker. It returns at once, and retries in the background until the queue has answered
// or ended, or the host worker ends. Then the next host worker does it when it finds the task
// ended.
func (c *coordinators) taskEnded(k runkey.Task, process int) {
	run, err := c.Plans.Run(k.Run)
	if err != nil || !slices.Contains(run.Coordinators, k.Task) {
		return
	}
	by := k
	by.Generation = run.Generation
	c.group.Go(func(ctx context.Context) {
		queue, err := c.queue(ctx, by)
		if err == nil {
			err = queue.ReleaseBefore(ctx, closurequeue.Caller{Task: k.Task, Process: process + 1})
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, closurequeue.ErrRunEnded) {
			c.Log.Warn("the resources of a task for closures could not be released", zap.String("task", k.Task), zap.Error(err))
		}
	})
}

// end drops the queue of a run.
func (c *coordinators) end(key runkey.Run) {
	c.mu.Lock()
	s := c.all[key]
	delete(c.all, key)
	c.mu.Unlock()
	if s != nil {
		s.Close()
	}
}

// close ends all reading ahead.
func (c *coordinators) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.all {
		s.Close()
	}
}

// noteCoordinator notes that a task schedules closures, so that the resources that it creates
// are released at its end.
func (c *coordinators) noteCoordinator(run *Run, task string) {
	if slices.Contains(run.Coordinators, task) {
		return
	}
	_, err := c.Plans.Note(run.Key, func(n *Notes) {
		if !slices.Contains(n.Coordinators, task) {
			n.Coordinators = append(slices.Clone(n.Coordinators), task)
		}
	})
	if err != nil {
		c.Log.Warn("a client of the call queue could not be recorded; its resources may stay until the run ends", zap.Error(err))
	}
}
