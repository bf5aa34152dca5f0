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
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// coordinators are the queues of runs, for the tasks that schedule closures. They keep only
// news that was read ahead. Everything else is in the queues and in the processes, so another
// host worker can continue.
type coordinators struct {
	Config
	group *background.Group

	mu  sync.Mutex
	all map[runkey.Run]*closurequeue.Service
}

// Answer implements [taskapi.Coordinators].
func (c *coordinators) Answer(ctx context.Context, by runkey.Task, process int, operation string, message []byte) (any, *wire.Problem) {
	run, s, err := c.serviceOf(ctx, by)
	if err != nil {
		return nil, closurequeue.Problem(err)
	}
	if operation != wire.OpOpen {
		return s.Answer(ctx, closurequeue.Caller{Task: by.Task, Process: process}, operation, message)
	}
	out, err := c.open(ctx, run, s, by.Task, process)
	if err != nil {
		return nil, closurequeue.Problem(err)
	}
	return out, nil
}

// serviceOf returns the run of a task and its queue. It waits until the host worker has
// connected to the server.
func (c *coordinators) serviceOf(ctx context.Context, by runkey.Task) (*Run, *closurequeue.Service, error) {
	run, err := c.runOf(by)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (%w)", closurequeue.ErrRunEnded, err)
	}
	for again := askAgain; ; {
		s, err := c.serviceHere(&run)
		if err == nil {
			return &run, s, nil
		}
		if again.Sleep(ctx) != nil {
			return nil, nil, err
		}
	}
}

func (c *coordinators) serviceHere(run *Run) (*closurequeue.Service, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.all[run.Key]; s != nil {
		return s, nil
	}
	client, err := c.Queues.Client(run.ofQueue())
	if err != nil {
		return nil, err
	}
	client.Warn = func(request string, err error) {
		c.Log.Warn("a request to the call queue keeps failing; retrying",
			zap.String("queue", client.ID()), zap.String("request", request), zap.Error(err))
	}
	s := closurequeue.NewService(client, c.tasksOf(run))
	if c.all == nil {
		c.all = map[runkey.Run]*closurequeue.Service{}
	}
	c.all[run.Key] = s
	return s, nil
}

// open opens the queue of a run for a process of a task, by its number, and releases the
// resources that earlier processes of the task have created.
func (c *coordinators) open(ctx context.Context, run *Run, s *closurequeue.Service, task string, process int) (closure.Opened, error) {
	// The run ends its queue only if it knows about the queue.
	c.noteQueue(run)
	c.noteCoordinator(run, task)
	in := c.queueInput(run)
	for again := askAgain; ; {
		var out closure.Opened
		err := s.Open(ctx, in)
		if err == nil {
			out, err = s.Opened(ctx, in)
		}
		if err == nil {
			return out, releaseBefore(ctx, s.Client, task, process)
		}
		c.Log.Debug("a call queue could not be opened; retrying", zap.String("queue", s.ID()), zap.Error(err))
		if again.Sleep(ctx) != nil {
			return out, err
		}
	}
}

// releaseBefore releases the per-worker resources that earlier processes of a task have
// created. They have ended, and may have been killed.
func releaseBefore(ctx context.Context, client *closurequeue.Client, task string, process int) error {
	if process == 0 {
		return nil
	}
	_, err := client.ReleaseResources(ctx, closure.ReleaseRequest{Task: task, Process: process})
	if _, ok := errors.AsType[*closure.RefusedError](err); ok {
		return nil // the run has ended, and its resources with it
	}
	return err
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
		_, s, err := c.serviceOf(ctx, by)
		if err == nil {
			err = releaseBefore(ctx, s.Client, k.Task, process+1)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, closurequeue.ErrRunEnded) {
			c.Log.Warn("the resources of a task for closures could not be released", zap.String("task", k.Task), zap.Error(err))
		}
	})
}

// end drops the service of a run.
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
