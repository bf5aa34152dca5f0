package workers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/metrics"
	"github.com/clusterrun/clusterrun/activities/retry"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/temporal"
	"github.com/clusterrun/clusterrun/activities/undumpable"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows"
	"github.com/clusterrun/clusterrun/workflows/closure"
	"github.com/clusterrun/clusterrun/workflows/closurequeue"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const defaultQueue = spec.TaskQueue

// Side runs the Temporal-facing half of a host worker in a child of
// [Supervise], from which it takes its options. It ends after SIGTERM, when
// the supervisor closes, and when the supervisor is gone; in that last case it
// first ends what the supervisor left behind.
func Side(ctx context.Context) error {
	if err := undumpable.Set(); err != nil {
		return err
	}
	var o Options
	if err := json.Unmarshal([]byte(os.Getenv(optionsVar)), &o); err != nil {
		return fmt.Errorf("this command is started by a clusterrun supervisor, not by hand: %s: %w", optionsVar, err)
	}
	_ = os.Unsetenv(optionsVar)
	log, err := newLogger(o.Debug)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }()
	sup, err := supervisor.ClientFromEnv()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	// Our log may go to a pipe whose reader died with the supervisor, and then
	// there is work left to do. Ctrl-C on a terminal reaches us as well; the
	// supervisor decides what it means.
	signal.Ignore(syscall.SIGINT, syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	s := &side{Options: o, log: log, supervisor: sup}
	return s.run(ctx)
}

type side struct {
	Options
	log        *zap.Logger
	supervisor *supervisor.Client
	client     client.Client
	held       *heldTasks
	metered    client.MetricsHandler // nil: the SDK counts nothing
	metrics    *metrics.Metrics      // nil: there are none
}

func (s *side) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &temporal.Server{}
	defer server.Close()
	rounds, queues := temporal.NewBarriers(server, s.Queue), temporal.NewQueues(server, s.Queue)
	files := s.openFiles()
	s.held = newHeldTasks(s.StateDir, s.log)
	config := activities.Config{
		Name: s.Host, Instance: s.supervisor.Instance(), StateDir: s.StateDir, KeyDir: s.KeyDir, LogRoot: s.logRoot(),
		Retention: s.Retention, LogsCopiedTo: s.LogsCopiedTo, Advertise: s.Advertise, Slots: s.Slots, Owned: s.Owned,
		OwnersOutput: s.OwnersOutput, Foreground: s.Foreground, Stdin: s.Stdin, Env: s.Env,
		Guard: s.guard(),
		Files: files, Supervisor: s.supervisor, Server: server, Rounds: rounds, Runs: server, Log: s.log,
		Queues: queues, Queue: spec.InstanceQueue(s.Queue, s.Host, s.supervisor.Instance()),
		AskedAt: s.held.askedAt,
	}
	if s.Metrics != "" {
		config.Metrics = metrics.New()
		s.metrics, s.metered = config.Metrics, sdkMetrics{config.Metrics.SDK()}
		go s.serveMetrics(ctx)
	}
	var member *temporal.Membership
	if !spec.IsPrivateQueue(s.Queue) && s.Role.servesTasks() {
		member = temporal.NewMembership(server, s.Queue, s.inventory(files))
		config.Fleet = member
		if config.Metrics != nil {
			config.Metrics.LeaseAge(member.Confirmed)
		}
	}
	host, err := activities.NewHost(config)
	if err != nil {
		return err
	}
	defer host.Close()
	defer serveFiles(files, host)()
	// Tasks need no server for most of what they ask.
	if err := host.ServeTasks(ctx); err != nil {
		return err
	}
	inherited := s.held.inherited()
	c, err := s.dial(ctx)
	if err != nil {
		return err
	}
	s.client = c
	if s.metrics != nil && s.Role.servesWorkflows() {
		go s.countRuns(ctx, c)
	}
	if s.IdleExit > 0 && s.Role.servesWorkflows() {
		go s.stayForRuns(ctx, c)
	}
	server.Connect(c)
	running, err := s.startWorkers(host, temporal.NewClosures(server, host.Brokers()), rounds, queues, member)
	if err != nil {
		return err
	}
	if member != nil {
		go member.Keep(ctx, host.Holds, s.sayMembership(ctx))
	} else {
		s.sayReady(true)
		s.sayServing(ctx)
	}
	go s.takeOver(ctx, inherited)
	host.Reconcile()
	go returnMemory(ctx)
	s.log.Info("ready", zap.String("host", s.Host), zap.String("queue", s.Queue))

	closing := make(chan supervisor.ClosingReply, 1)
	go func() {
		if reply, err := s.supervisor.Closing(ctx); err == nil {
			closing <- reply
		}
	}()
	select {
	case <-ctx.Done():
	case reply := <-closing:
		// Its processes end with it should it die now.
		closed, done := context.WithCancel(ctx)
		go func() {
			defer done()
			s.close(closed, host, reply)
			if member != nil {
				member.Leave()
			}
		}()
		if reply.OwnerGone && s.Owned {
			defer host.RemoveSockets()
		}
		select {
		case <-closed.Done():
		case <-s.supervisor.Lost():
			done()
			return s.afterLoss(ctx, running)
		}
	case <-s.supervisor.Lost():
		return s.afterLoss(ctx, running)
	}
	running.stop()
	return nil
}

// afterLoss ends what the supervisor left behind: its processes died with it, and
// what got out of their sessions is ours.
func (s *side) afterLoss(ctx context.Context, running polling) error {
	running.stop()
	n, err := s.supervisor.SweepAfterLoss(context.WithoutCancel(ctx))
	s.log.Warn("the supervisor is gone", zap.Int("swept", n))
	return errors.Join(errors.New("the supervisor is gone"), err)
}

// untilServed is the time between tries to reach the server.
var untilServed = retry.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}

// dial keeps trying: processes are to be looked after as soon as the server is
// back, and until then the supervisor needs nobody.
func (s *side) dial(ctx context.Context) (client.Client, error) {
	server := s.Server
	server.Identity = identity(s.Host, s.supervisor.Instance())
	server.Metrics = s.metered
	for again := untilServed; ; {
		c, err := connect.Dial(ctx, server, sdkLogger{s.log}, 10*time.Second,
			grpc.WithChainUnaryInterceptor(s.held.intercept))
		if err == nil {
			return c, nil
		}
		s.log.Warn("no connection to the Temporal server; trying again", zap.Error(err))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.supervisor.Lost():
			return nil, errors.New("the supervisor is gone")
		case <-time.After(again.Next()):
		}
	}
}

func (s *side) logRoot() string {
	return cmp.Or(s.LogRoot, filepath.Join(s.StateDir, "logs"))
}

// close lets the runs of a gone owner end with a result while the supervisor
// stops their processes.
func (s *side) close(ctx context.Context, host *activities.Host, reply supervisor.ClosingReply) {
	s.log.Info("the supervisor is closing")
	s.sayReady(false)
	if reply.OwnerGone && s.Server.Socket != "" {
		return // the owner was the way to the server
	}
	// The supervisor bounds all of this: it ends us when it has waited enough.
	if reply.OwnerGone && s.Owned {
		for _, run := range host.CancelRuns(ctx) {
			_ = s.client.GetWorkflow(ctx, run.WorkflowID, run.RunID).Get(ctx, nil)
		}
	}
	host.AwaitIdle(ctx)
}

// sayReady tells those who ask at the address of the metrics.
func (s *side) sayReady(ready bool) {
	if s.metrics != nil {
		s.metrics.Ready.Store(ready)
	}
}

// sayServing tells the supervisor that the queues of this host are served.
func (s *side) sayServing(ctx context.Context) {
	if err := s.supervisor.Serving(ctx); err != nil {
		s.log.Debug("the supervisor does not hear that its host is served", zap.Error(err))
	}
}

// sayMembership returns what says, once each time that it changes, whether the fleet takes
// this host. The supervisor is told once that it does.
func (s *side) sayMembership(ctx context.Context) func(error) {
	said, serving := "", false
	return func(err error) {
		s.sayReady(err == nil)
		if err == nil && !serving {
			serving = true
			s.sayServing(ctx)
		}
		now := ""
		if err != nil {
			now = err.Error()
		}
		if now == said {
			return
		}
		if said = now; err != nil {
			s.log.Error("this host worker takes no new tasks", zap.Error(err))
		} else {
			s.log.Info("the fleet has this host worker again")
		}
	}
}

// polling is the set of workers of a side.
type polling []worker.Worker

// stop ends them at the same time: each waits for polls of its own.
func (p polling) stop() {
	var all sync.WaitGroup
	for _, w := range p {
		all.Go(w.Stop)
	}
	all.Wait()
}

// startWorkers polls the queues of DESIGN §4: workflows, reservations for any
// host and for this one where it is private, and everything else for this very host worker.
func (s *side) startWorkers(host *activities.Host, closures *temporal.Closures, rounds *temporal.Barriers, queues *temporal.Queues, member *temporal.Membership) (polling, error) {
	var all polling
	if s.Role.servesWorkflows() {
		flows := worker.New(s.client, s.Queue, s.workflowOptions())
		flows.RegisterWorkflowWithOptions(workflows.ClusterRun, workflow.RegisterOptions{Name: spec.WorkflowType})
		flows.RegisterWorkflowWithOptions(workflows.TaskGroup, workflow.RegisterOptions{Name: spec.GroupWorkflowType})
		flows.RegisterWorkflowWithOptions(workflows.Fleet, workflow.RegisterOptions{Name: spec.FleetWorkflowType})
		flows.RegisterWorkflowWithOptions(workflows.Barrier, workflow.RegisterOptions{Name: spec.BarrierWorkflowType})
		flows.RegisterWorkflowWithOptions(closurequeue.Workflow, workflow.RegisterOptions{Name: closure.QueueType})
		all = append(all, flows)
	}
	if s.Role.servesTasks() {
		all = append(all, s.taskWorkers(host, closures, rounds, queues, member)...)
	}
	for i, w := range all {
		if err := w.Start(); err != nil {
			all[:i].stop()
			return nil, fmt.Errorf("poll the queues of this host: %w", err)
		}
	}
	return all, nil
}

// taskWorkers returns those for the activities of tasks.
func (s *side) taskWorkers(host *activities.Host, closures *temporal.Closures, rounds *temporal.Barriers, queues *temporal.Queues, member *temporal.Membership) (all polling) {
	anywhere := []string{spec.HostsQueue(s.Queue)}
	if member == nil {
		anywhere = append(anywhere, spec.HostQueue(s.Queue, s.Host))
	}
	for _, queue := range anywhere {
		w := worker.New(s.client, queue, reserveOptions())
		if member == nil {
			w.RegisterActivityWithOptions(host.Reserve, activity.RegisterOptions{Name: spec.ActivityReserve})
		}
		w.RegisterActivityWithOptions(queues.ClosuresCheck, activity.RegisterOptions{Name: closure.ActivityClosuresCheck})
		all = append(all, w)
	}
	tasks := worker.New(s.client, spec.InstanceQueue(s.Queue, s.Host, s.supervisor.Instance()), s.taskOptions())
	// The next generation of a group is reserved where the last one was.
	tasks.RegisterActivityWithOptions(host.Reserve, activity.RegisterOptions{Name: spec.ActivityReserve})
	tasks.RegisterActivityWithOptions(host.Prepare, activity.RegisterOptions{Name: spec.ActivityPrepare})
	tasks.RegisterActivityWithOptions(host.RunTask, activity.RegisterOptions{Name: spec.ActivityRunTask})
	tasks.RegisterActivityWithOptions(host.Control, activity.RegisterOptions{Name: spec.ActivityControl})
	tasks.RegisterActivityWithOptions(host.Release, activity.RegisterOptions{Name: spec.ActivityRelease})
	tasks.RegisterActivityWithOptions(closures.RunClosures, activity.RegisterOptions{Name: closure.ActivityRunClosures})
	tasks.RegisterActivityWithOptions(closures.CancelClosures, activity.RegisterOptions{Name: closure.ActivityCancelClosures})
	tasks.RegisterActivityWithOptions(closures.ReleaseResources, activity.RegisterOptions{Name: closure.ActivityReleaseResources})
	tasks.RegisterActivityWithOptions(queues.EndClosures, activity.RegisterOptions{Name: closure.ActivityEndClosures})
	tasks.RegisterActivityWithOptions(rounds.BarrierCheck, activity.RegisterOptions{Name: spec.ActivityBarrierCheck})
	if member != nil {
		tasks.RegisterActivityWithOptions(member.HostLease, activity.RegisterOptions{Name: spec.ActivityHostLease})
		tasks.RegisterActivityWithOptions(member.FleetCheck, activity.RegisterOptions{Name: spec.ActivityFleetCheck})
	}
	return append(all, tasks)
}
