package taskservices

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/hostuser"
	"github.com/clusterrun/clusterrun/activities/system/metrics"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/closures"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/steptime"
)

// Config configures [Services].
type Config struct {
	// Host is the name of this host, and Queue the task queue of its host worker's
	// activities.
	Host, Queue string
	// StateDir is the state directory of the host worker.
	StateDir string
	Plans    Plans
	// Rounds keeps the barriers across hosts. If nil, there are no such barriers.
	Rounds barriers.Server
	// Runs sends requests of tasks to their runs. If nil, tasks cannot make any.
	Runs Runs
	// Queues returns a client of the queue of closures of a run, which tasks here serve and
	// schedule. It fails while the server is not connected. If nil, tasks can do neither.
	Queues func(run spec.RunRef) (*closurequeue.Client, error)
	// Poll polls for the batches of closures of a run, until stop is called. If nil, only those
	// for this host come.
	Poll func(run spec.RunRef, b *closures.Broker) (stop func())
	// Restart stops the process of a task that does not end a call. The process is started
	// again, as if an operator had restarted it.
	Restart func(ctx context.Context, run runkey.Run, task string) error
	// MayServe returns an error if a task must not be given closures.
	MayServe func(run runkey.Run, task string) error
	// Getenv returns a variable of the environment that tasks inherit. The default is [os.Getenv].
	Getenv  func(name string) string
	Metrics *metrics.Metrics
	Log     *zap.Logger
}

// Services answer the requests of the tasks of a host.
type Services struct {
	Config
	group *background.Group
	*taskapi.Server
	meetings *barriers.Barriers // nil without Rounds
	views    views
	stops    *stops
	brokers  *Brokers
}

// New returns services without any tasks.
func New(c Config) (*Services, error) {
	if c.Metrics == nil {
		c.Metrics = metrics.New()
	}
	if c.Getenv == nil {
		c.Getenv = os.Getenv
	}
	g := background.NewGroup()
	s := &Services{Config: c, group: g, brokers: newBrokers(c, g)}
	s.stops = &stops{Config: c}
	o := taskapi.Config{StateDir: c.StateDir, Observe: c.Metrics.Steps.Observe, Log: c.Log}
	var err error
	if c.Rounds != nil {
		s.meetings, err = barriers.New(barriers.Config{Server: c.Rounds, Host: c.Host, Queue: c.Queue, StateDir: c.StateDir, Log: c.Log})
		if err != nil {
			return nil, err
		}
		o.Barriers = newAcrossHosts(s.meetings, c.Metrics.BarrierWaits)
	}
	if c.Runs != nil {
		o.Stops = s.stops
	}
	if c.Queues != nil {
		o.Broker, o.Queue = s.brokers.ForProcess, s.queue
	}
	if s.Server, err = taskapi.NewServer(o); err != nil {
		return nil, err
	}
	s.stops.tell = s.SetStopping
	return s, nil
}

// Close ends the services and waits for everything that they do. Tasks get no answer: they ask
// again, and reach the next host worker.
func (s *Services) Close() {
	if s.meetings != nil {
		// This comes first: the end of a connection would withdraw arrivals.
		s.meetings.Close()
	}
	_ = s.Server.Close()
	s.group.Close()
	s.brokers.close()
}

// Brokers returns the brokers through which tasks here call closures.
func (s *Services) Brokers() *Brokers { return s.brokers }

// Served is a task with a process.
type Served struct {
	Key          runkey.Task
	RestartCount int
	LogDir       string
	User         *hostuser.User
	// Alone reports whether the task has a view of its own. Others share the view of their
	// generation.
	Alone bool
	// View returns the view that the task has of the cluster.
	View func() *taskapi.View
}

// Listen serves a task and returns the path of its socket.
func (s *Services) Listen(t Served) (string, error) {
	return s.Server.Listen(taskapi.Task{
		ID: t.Key, RestartCount: t.RestartCount, Host: s.Host, LogDir: t.LogDir, User: t.User, View: s.views.of(t),
	})
}

// Learn notes the state of stopping together of a run, unless a newer one is known, and tells
// the tasks. It returns the newest state.
func (s *Services) Learn(run runkey.Run, now spec.Stopping) (spec.Stopping, error) {
	return s.stops.learn(run, now)
}

// SlowestRatio returns the step time of the slowest task here, divided by the median of the other
// tasks of its type and run on this host. It returns 1 if no task is slow.
func (s *Services) SlowestRatio() float64 {
	byRun := map[runkey.Task][]steptime.Task{}
	for k, t := range s.Server.StepTimes() {
		kind, _, _ := spec.ParseTaskName(k.Task)
		run := runkey.Task{Run: k.Run, Generation: k.Generation}
		byRun[run] = append(byRun[run], steptime.Task{Name: k.Task, Type: kind, Time: t})
	}
	ratio := 1.0
	for _, tasks := range byRun {
		for _, slow := range steptime.Find(tasks) {
			ratio = max(ratio, slow.Ratio)
		}
	}
	return ratio
}

// Restarts records that a process has ended, and how, and that its task gets another process.
func (s *Services) Restarts(k runkey.Task, how string) { s.Server.Ended(k, false, how) }

// Ended records that a task has ended, and how.
func (s *Services) Ended(k runkey.Task, how string) { s.Server.Ended(k, true, how) }

// Lost records that a task has ended and that nothing is known about its processes.
func (s *Services) Lost(run Run, k runkey.Task) {
	s.brokers.processEnded(run, k.Task)
	s.Server.Ended(k, true, "was lost")
}

// Release ends the services for the tasks of a run except its closures.
func (s *Services) Release(ctx context.Context, run runkey.Run) {
	if s.meetings != nil {
		// A round that cannot be ended now finds out by itself that the run is over.
		if err := s.meetings.Forget(ctx, run.WorkflowID, run.RunID); err != nil {
			s.Log.Warn("a barrier of a released run is still open", zap.Error(err))
		}
	}
	s.Server.Release(run)
	s.stops.forget(run)
	s.views.forget(run)
}

// ReleaseClosures ends the closures of a run here, without telling its queue. The run must be
// released already: otherwise a retried lease would create a broker again.
func (s *Services) ReleaseClosures(run Run) {
	s.brokers.end(run.Key)
}

// HasQueue reports whether the run has a queue of closures. A coordinator may have opened the
// queue even if no task here has served.
func (s *Services) HasQueue(ctx context.Context, run Run) bool {
	if run.Served || s.Queues == nil {
		return run.Served
	}
	q, err := s.Queues(run.ofQueue())
	left := false
	if err == nil {
		left, err = q.Left(ctx)
	}
	if err != nil {
		s.Log.Debug("cannot tell whether the run has a call queue; if so, the queue ends by itself", zap.Error(err))
	}
	return left
}

// EndAbandoned ends the closures and the queue of a run that will no longer be released,
// unless the run continues elsewhere: a run that continues as new leaves closed executions
// behind. If that fails, the queue's own check ends it later.
func (s *Services) EndAbandoned(ctx context.Context, run Run) {
	if _, ok := s.here(run.Key); ok || s.Queues == nil {
		return
	}
	s.ReleaseClosures(run)
	if err := s.endQueue(ctx, run); err != nil {
		s.Log.Debug("the call queue of an abandoned run was not ended; it ends by itself", zap.String("run", run.Key.WorkflowID), zap.Error(err))
	}
}

// endQueue ends the queue of a run if the run has ended.
func (s *Services) endQueue(ctx context.Context, run Run) error {
	q, err := s.Queues(run.ofQueue())
	if err != nil {
		return err
	}
	over, err := q.Over(ctx)
	if err != nil || over == "" {
		return err
	}
	return q.End(ctx, over)
}

var errReleased = errors.New("the run is released on this host")

// runOf returns the run of a task if the run is in the generation of the task.
func (c *Config) runOf(by runkey.Task) (Run, error) {
	r, err := c.Plans.Run(by.Run)
	switch {
	case err != nil, r.Released:
		return Run{}, errReleased
	case r.Generation != by.Generation:
		return Run{}, fmt.Errorf("restart %[2]d of all tasks has begun; this request is for restart %[1]d", by.Generation, r.Generation)
	}
	return r, nil
}
