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
	// Host is this host's name, and Queue the task queue for its host worker's activities.
	Host, Queue string
	// StateDir is the host worker's state directory.
	StateDir string
	Plans    Plans
	// Rounds stores the barriers across hosts. If nil, barriers cannot span hosts.
	Rounds barriers.Server
	// Runs sends tasks' requests to their runs. If nil, tasks cannot make any.
	Runs Runs
	// Queues returns a client of the closure queue that a run's tasks serve and schedule. It fails
	// while the server is not connected. If nil, tasks can do neither.
	Queues func(run spec.RunRef) (*closurequeue.Client, error)
	// Poll polls for a run's closure batches until stop is called. If nil, only batches addressed
	// to this host arrive.
	Poll func(run spec.RunRef, b *closures.Broker) (stop func())
	// Restart stops the process of a task that does not return from a call. The process restarts as
	// if an operator had restarted it.
	Restart func(ctx context.Context, run runkey.Run, task string) error
	// MayServe returns an error if a task must not receive closures.
	MayServe func(run runkey.Run, task string) error
	// Getenv returns an environment variable that tasks inherit. The default is [os.Getenv].
	Getenv  func(name string) string
	Metrics *metrics.Metrics
	Log     *zap.Logger
}

// Services answers the requests of a host's tasks.
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
		s.meetings = barriers.New(barriers.Config{Server: c.Rounds, Host: c.Host, Queue: c.Queue, StateDir: c.StateDir, Log: c.Log, Waits: c.Metrics.BarrierWaits})
		o.Barriers = s.meetings
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

// Close stops the services and waits for their work. Waiting tasks are not answered. They retry,
// and reach the next host worker.
func (s *Services) Close() {
	if s.meetings != nil {
		// Close the meetings first, because closing a connection would withdraw arrivals.
		s.meetings.Close()
	}
	_ = s.Server.Close()
	s.group.Close()
	s.brokers.close()
}

// Brokers returns the brokers that pass closures to tasks here.
func (s *Services) Brokers() *Brokers { return s.brokers }

// Served is a task with a process.
type Served struct {
	Key          runkey.Task
	RestartCount int
	LogDir       string
	User         *hostuser.User
	// Alone reports whether the task has its own view. Other tasks share their generation's view.
	Alone bool
	// View returns the task's view of the cluster.
	View func() *taskapi.View
}

// Listen serves a task and returns its socket's path.
func (s *Services) Listen(t Served) (string, error) {
	return s.Server.Listen(taskapi.Task{
		ID: t.Key, RestartCount: t.RestartCount, Host: s.Host, LogDir: t.LogDir, User: t.User, View: s.views.of(t),
	})
}

// Learn records a run's state of stopping together, unless a newer one is known, and notifies the
// tasks. It returns the newest state.
func (s *Services) Learn(run runkey.Run, now spec.Stopping) (spec.Stopping, error) {
	return s.stops.learn(run, now)
}

// SlowestRatio returns the step time of this host's slowest task, divided by the median of the
// other tasks of its type and run on this host. It returns 1 if no task is slow.
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

// Restarts records how a process exited, and that its task gets another process.
func (s *Services) Restarts(k runkey.Task, how string) { s.Server.Ended(k, false, how) }

// Ended records that a task has ended, and how.
func (s *Services) Ended(k runkey.Task, how string) { s.Server.Ended(k, true, how) }

// Lost records that a task has ended, and that it is unknown what became of its processes.
func (s *Services) Lost(k runkey.Task) {
	s.brokers.ProcessEnded(k)
	s.Server.Ended(k, true, "was lost")
}

// Release stops serving a run's tasks, except for closures.
func (s *Services) Release(ctx context.Context, run runkey.Run) {
	if s.meetings != nil {
		// A round that cannot be closed now detects that the run is over.
		if err := s.meetings.Forget(ctx, run.WorkflowID, run.RunID); err != nil {
			s.Log.Warn("a released run's barrier is still open", zap.Error(err))
		}
	}
	s.Server.Release(run)
	s.stops.forget(run)
	s.views.forget(run)
}

// ReleaseClosures stops serving a run's closures, without notifying the queue. The run must be
// released already, or a retried lease would recreate a broker.
func (s *Services) ReleaseClosures(run runkey.Run) {
	s.brokers.end(run)
}

// NoteQueue records a run's closure queue, which is closed with the run. A program elsewhere may
// have opened it.
func (s *Services) NoteQueue(key runkey.Run) {
	if run, ok := s.here(key); ok {
		s.noteQueue(&run)
	}
}

var errReleased = errors.New("the run has been released on this host")

// runOf returns a task's run if the run is in the task's generation.
func (c *Config) runOf(by runkey.Task) (Run, error) {
	r, err := c.Plans.Run(by.Run)
	switch {
	case err != nil, r.Released:
		return Run{}, errReleased
	case r.Generation != by.Generation:
		return Run{}, fmt.Errorf("restart %[2]d of all tasks has started; this request is for restart %[1]d", by.Generation, r.Generation)
	}
	return r, nil
}
