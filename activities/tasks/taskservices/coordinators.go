package taskservices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// coordinators pass what tasks here schedule on to the queues of their runs. They keep only
// what was read ahead of the histories; the rest is in the queues and in the processes, so
// another host worker can continue.
type coordinators struct {
	Config
	group *background.Group

	mu sync.Mutex
	// feeds has the feeds of the queues.
	feeds map[runkey.Run]*closurequeue.Feeds
	// tasks has the tasks that closures may ask for.
	tasks map[runkey.Run]*closurequeue.Tasks
}

var _ taskapi.Coordinators = (*coordinators)(nil)

// queueOf returns the run of a task and its queue. It waits until there is a connection to
// the server.
func (c *coordinators) queueOf(ctx context.Context, by runkey.Task) (*Run, *closurequeue.Client, error) {
	run, err := c.runOf(by)
	if err != nil {
		return nil, nil, fmt.Errorf("%w (%w)", taskapi.ErrRunOver, err)
	}
	for again := askAgain; ; {
		client, err := c.Queues.Client(run.ofQueue())
		if err == nil {
			client.Warn = func(request string, err error) {
				c.Log.Warn("a request to the queue of closures keeps failing; retrying",
					zap.String("queue", client.ID()), zap.String("request", request), zap.Error(err))
			}
			return &run, client, nil
		}
		if again.Sleep(ctx) != nil {
			return nil, nil, err
		}
	}
}

// Open implements [taskapi.Coordinators].
func (c *coordinators) Open(ctx context.Context, by runkey.Task, process int) (taskapi.Opened, error) {
	run, client, err := c.queueOf(ctx, by)
	if err != nil {
		return taskapi.Opened{}, err
	}
	// The run ends its queue only if it knows about the queue.
	c.noteQueue(run)
	c.noteCoordinator(run, by.Task)
	in := c.queueInput(run)
	for again := askAgain; ; {
		err := c.Queues.Open(ctx, client, in)
		if err == nil {
			var here closurequeue.Position
			if here, err = client.Here(ctx); err == nil {
				err = c.releaseBefore(ctx, client, by.Task, process)
				return taskapi.Opened{At: here.String(), Room: closurequeue.FirstRoom(in.QueueSize)}, forTasks(err)
			}
		}
		c.Log.Debug("a queue of closures could not be opened; retrying", zap.String("queue", client.ID()), zap.Error(err))
		if again.Sleep(ctx) != nil {
			return taskapi.Opened{}, err
		}
	}
}

// releaseBefore releases the per-worker resources that earlier processes of a task have
// created. They have ended, and may have been killed.
func (c *coordinators) releaseBefore(ctx context.Context, client *closurequeue.Client, task string, process int) error {
	if process == 0 {
		return nil
	}
	_, err := client.ReleaseResources(ctx, closure.ReleaseRequest{Task: task, Process: process})
	var refused *closure.RefusedError
	if errors.As(err, &refused) {
		return nil // the run has ended, and its resources with it
	}
	return err
}

// taskEnded releases what a task has created, after it has ended for good with the process of
// that number. It does so even if the task scheduled closures through an earlier host worker.
// It returns at once, and retries in the background until the queue has answered or ended, or
// the host worker ends. Then the next host worker does it when it finds the task ended.
func (c *coordinators) taskEnded(k runkey.Task, process int) {
	run, err := c.Plans.Run(k.Run)
	if err != nil || !slices.Contains(run.Coordinators, k.Task) {
		return
	}
	by := k
	by.Generation = run.Generation
	c.group.Go(func(ctx context.Context) {
		_, client, err := c.queueOf(ctx, by)
		if err == nil {
			err = c.releaseBefore(ctx, client, k.Task, process+1)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, closurequeue.ErrRunEnded) && !errors.Is(err, taskapi.ErrRunOver) {
			c.Log.Warn("the resources of a task for closures could not be released", zap.String("task", k.Task), zap.Error(err))
		}
	})
}

// asking sends a request to the queue of a task's run.
func asking[Q, A any](ctx context.Context, c *coordinators, by runkey.Task, in Q, ask func(*closurequeue.Client, context.Context, Q) (A, error)) (A, error) {
	_, client, err := c.queueOf(ctx, by)
	if err != nil {
		var none A
		return none, err
	}
	out, err := ask(client, ctx, in)
	return out, forTasks(err)
}

// forTasks returns an error of a queue in the form that tasks are told.
func forTasks(err error) error {
	if errors.Is(err, closurequeue.ErrRunEnded) {
		return taskapi.ErrRunOver
	}
	return err
}

// Schedule implements [taskapi.Coordinators].
func (c *coordinators) Schedule(ctx context.Context, by runkey.Task, in closure.ScheduleRequest) (closure.ScheduleAnswer, error) {
	if err := c.checkTasks(ctx, by, in.Closures); err != nil {
		return closure.ScheduleAnswer{}, err
	}
	return asking(ctx, c, by, in, (*closurequeue.Client).Schedule)
}

// Join implements [taskapi.Coordinators].
func (c *coordinators) Join(ctx context.Context, by runkey.Task, in closure.WaitRequest) (closure.WaitAnswer, error) {
	return asking(ctx, c, by, in, (*closurequeue.Client).Join)
}

// Done implements [taskapi.Coordinators].
func (c *coordinators) Done(ctx context.Context, by runkey.Task, in closure.WaitRequest) (closure.WaitAnswer, error) {
	return asking(ctx, c, by, in, (*closurequeue.Client).Done)
}

// CreateResource implements [taskapi.Coordinators].
func (c *coordinators) CreateResource(ctx context.Context, by runkey.Task, in closure.ResourceRequest) (closure.ResourceAnswer, error) {
	return asking(ctx, c, by, in, (*closurequeue.Client).CreateResource)
}

// ReleaseResources implements [taskapi.Coordinators].
func (c *coordinators) ReleaseResources(ctx context.Context, by runkey.Task, in closure.ReleaseRequest) (closure.ReleaseAnswer, error) {
	return asking(ctx, c, by, in, (*closurequeue.Client).ReleaseResources)
}

// Cancel implements [taskapi.Coordinators].
func (c *coordinators) Cancel(ctx context.Context, by runkey.Task, in closure.CancelRequest) (closure.CancelAnswer, error) {
	return asking(ctx, c, by, in, (*closurequeue.Client).Cancel)
}

// Find implements [taskapi.Coordinators].
func (c *coordinators) Find(ctx context.Context, by runkey.Task, ids []uint64) (map[uint64]closure.Outcome, error) {
	return asking(ctx, c, by, ids, func(client *closurequeue.Client, ctx context.Context, ids []uint64) (map[uint64]closure.Outcome, error) {
		return client.Find(ctx, ids...)
	})
}

// Outcomes implements [taskapi.Coordinators].
func (c *coordinators) Outcomes(ctx context.Context, by runkey.Task, session, after string, wait time.Duration) (taskapi.Outcomes, error) {
	at, err := closurequeue.ParsePosition(after)
	if err != nil {
		return taskapi.Outcomes{}, &closure.RefusedError{Reason: err}
	}
	run, client, err := c.queueOf(ctx, by)
	if err != nil {
		return taskapi.Outcomes{}, err
	}
	b, err := c.feedsOf(run.Key, client).Next(ctx, session, at, wait)
	if err != nil {
		return taskapi.Outcomes{}, forTasks(err)
	}
	out := taskapi.Outcomes{At: b.At.String(), Outcomes: b.Outcomes}
	for _, c := range b.Cancelled {
		out.Cancelled = append(out.Cancelled, taskapi.CancelledClosures(c))
	}
	return out, nil
}

func (c *coordinators) feedsOf(key runkey.Run, client *closurequeue.Client) *closurequeue.Feeds {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.feeds[key]
	if f == nil {
		f = closurequeue.NewFeeds(client)
		if c.feeds == nil {
			c.feeds = map[runkey.Run]*closurequeue.Feeds{}
		}
		c.feeds[key] = f
	}
	return f
}

// end drops what is kept of a run.
func (c *coordinators) end(key runkey.Run) {
	c.mu.Lock()
	f := c.feeds[key]
	delete(c.feeds, key)
	delete(c.tasks, key)
	c.mu.Unlock()
	if f != nil {
		f.Close()
	}
}

// close ends all reading ahead.
func (c *coordinators) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.feeds {
		f.Close()
	}
}

// noteCoordinator notes that a task schedules closures, so that what it creates for them is
// released at its end.
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
		c.Log.Warn("it could not be noted that a task schedules closures; its resources may stay until the run ends", zap.Error(err))
	}
}
