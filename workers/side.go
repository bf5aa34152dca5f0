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
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/process/hostcheck"
	"github.com/clusterrun/clusterrun/activities/process/supervise"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/system/metrics"
	"github.com/clusterrun/clusterrun/activities/system/proc"
	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/workers/connect"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const defaultQueue = spec.TaskQueue

// Side runs the Temporal-facing half of a host worker in a child process of its supervisor, which passes it
// its options; see [Supervisor]. It exits on SIGTERM, when the supervisor shuts down, and when the
// supervisor is gone; in the last case it first kills what the supervisor left behind.
func Side(ctx context.Context) error {
	if err := proc.SetUndumpable(); err != nil {
		return err
	}
	var o Options
	options := json.NewDecoder(strings.NewReader(os.Getenv(optionsVar)))
	options.DisallowUnknownFields() // the supervisor's version may differ
	if err := options.Decode(&o); err != nil {
		return fmt.Errorf("this command is started by a clusterrun supervisor, not by hand: %s: %w", optionsVar, err)
	}
	_ = os.Unsetenv(optionsVar)
	log, _, err := newLogger(o.Debug, stderr)
	if err != nil {
		return err
	}
	defer log.Sync() //nolint:errcheck // it has none
	sup, err := supervisor.ClientFromEnv()
	if err != nil {
		return err
	}
	if sup.Version() != "" && sup.Version() != spec.Version {
		if err := activities.UnderstandsPlans(o.StateDir); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	if err := sup.Hello(ctx, spec.Version); err != nil {
		return err
	}
	// The log may be a pipe, and its reader may have exited together with the supervisor while work remains.
	// Ctrl-C on a terminal also reaches this process, but the supervisor handles it. The signals
	// are caught rather than ignored, because the commands that this process starts would also
	// ignore them.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	s := &side{Options: o, log: log, supervisor: sup, asked: new(askedTimes), known: new(server.Known), identity: identity(o.Host, sup.Instance())}
	return s.run(ctx)
}

type side struct {
	Options
	log        *zap.Logger
	supervisor *supervisor.Client
	client     client.Client
	asked      *askedTimes
	known      *server.Known
	identity   string                // of this side on the server
	environ    []string              // that processes inherit; nil for os.Environ()
	hookDir    string                // see [activities.Config]
	process    int                   // with the limits that they inherit; 0 for this process
	metered    client.MetricsHandler // nil if the SDK's metrics are not collected
	metrics    *metrics.Metrics      // nil if metrics are not served
	host       *activities.Host
	server     *server.Server
	rounds     *server.Barriers
	queues     *server.Queues
	member     *server.Membership           // of the fleet; nil without a fleet
	checker    *hostcheck.Checker           // of this host; nil without a fleet
	files      *hostservice.Server          // nil if the output of runs is not served
	unlisten   func()                       // stops serving the output of runs and the metrics
	closing    chan supervisor.ClosingReply // the supervisor's reply once it is shutting down
	abandoned  atomic.Bool                  // the supervisor is shutting down because its runs' owner is gone
}

// run prepares the host, connects, and serves it until it stops.
func (s *side) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	defer s.server.Close()
	defer s.shut()
	c, err := s.dial(ctx)
	if ctx.Err() != nil {
		s.log.Info("stopped")
		return nil
	}
	if err != nil {
		return err
	}
	running, err := s.begin(ctx, c)
	if err != nil {
		return err
	}
	return s.attend(ctx, running.stop)
}

// prepare prepares everything that does not need the server. It also starts serving tasks'
// requests, since most do not need the server.
func (s *side) prepare(ctx context.Context) (err error) {
	if s.Home != nil {
		go s.Home.Keep(ctx, func(err error) {
			s.log.Warn("cannot start the embedded Temporal server; trying again", zap.Error(err))
		})
	}
	if s.Slots < 0 {
		s.Slots = runtime.GOMAXPROCS(0)
	}
	s.server = server.New(s.known)
	s.Advertise = s.advertised(ctx)
	s.rounds, s.queues = server.NewBarriers(s.server, s.Queue), server.NewQueues(s.server, s.Queue)
	s.files = s.openFiles()
	config := activities.Config{
		Name: s.Host, Instance: s.supervisor.Instance(), StateDir: s.StateDir, LogRoot: s.logRoot(),
		Retention: s.Retention, LogsCopiedTo: s.LogsCopiedTo, Advertise: s.Advertise, Slots: s.Slots, Oversubscribe: s.Oversubscribe, Owned: s.Owned,
		OwnersOutput: s.OwnersOutput, Foreground: s.Foreground, Stdin: s.Stdin, Env: s.Env, Environ: s.environ, Process: s.process, HookDir: s.hookDir,
		Guard: s.guard(),
		Files: s.files, Supervisor: s.supervisor, Server: s.server, Rounds: s.rounds, Runs: s.server, Log: s.log,
		Queues: s.queues.Of, Poll: s.server.PollClosures, Queue: spec.InstanceQueue(s.Queue, s.Host, s.supervisor.Instance()),
		AskedAt: s.asked.at, Identity: s.identity,
	}
	if s.Metrics != "" {
		config.Metrics = metrics.New()
		s.metrics, s.metered = config.Metrics, sdkMetrics{config.Metrics.SDK()}
	}
	if !spec.IsPrivateQueue(s.Queue) && s.Role.servesTasks() {
		s.checker = s.openChecks(ctx)
		s.member = server.NewMembership(s.server, s.Queue, s.inventory(s.files), s.checker)
		config.Fleet, config.Checks = s.member, s.checker
		if config.Metrics != nil {
			config.Metrics.LeaseAge(s.member.Confirmed)
			config.Metrics.FailedChecks(s.checker.Failed)
		}
	}
	if s.host, err = activities.NewHost(config); err != nil {
		return err
	}
	if config.Metrics != nil {
		config.Metrics.SlowestTask(s.host.SlowestRatio)
	}
	s.queues.Opened = s.host.NoteQueue
	s.unlisten = s.listens(ctx)
	s.closing = make(chan supervisor.ClosingReply, 1)
	go s.awaitClosing(ctx)
	if err = s.host.ServeTasks(ctx); err != nil {
		s.shut()
	}
	return err
}

// listens serves the metrics and the output of runs until end is called.
func (s *side) listens(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	if s.metrics != nil {
		go s.serveMetrics(ctx)
	}
	stopFiles := serveFiles(s.files, s.host)
	return func() {
		cancel()
		stopFiles()
	}
}

// awaitClosing waits until the supervisor is shutting down.
func (s *side) awaitClosing(ctx context.Context) {
	if reply, err := s.supervisor.Closing(ctx); err == nil {
		s.abandoned.Store(reply.OwnerGone && s.Owned)
		s.closing <- reply
	}
}

// shut undoes prepare.
func (s *side) shut() {
	if s.abandoned.Load() {
		s.host.RemoveSockets()
	}
	s.unlisten()
	s.host.Close()
}

// begin polls this host's queues.
func (s *side) begin(ctx context.Context, c client.Client) (polling, error) {
	s.client = c
	if s.metrics != nil && s.Role.servesWorkflows() {
		go s.countRuns(ctx, c)
	}
	if s.IdleExit > 0 {
		go s.exitWhenIdle(ctx)
	}
	s.server.Connect(c)
	running, err := s.startWorkers()
	if err != nil {
		return nil, err
	}
	if s.member != nil {
		go s.checker.Run(ctx, func() bool { return len(s.host.Holds()) == 0 })
		go s.member.Keep(ctx, s.host.Holds, s.sayMembership(ctx))
	} else {
		s.sayReady(true)
		go s.sayServing(ctx)
	}
	s.host.Reconcile()
	go supervise.ReturnMemory(ctx)
	s.log.Info("ready", zap.String("host", s.Host), zap.String("queue", s.Queue))
	return running, nil
}

// attend waits until ctx is done, or the supervisor has finished its work or died. Before it
// returns, it calls stop, which stops polling.
func (s *side) attend(ctx context.Context, stop func()) error {
	select {
	case <-ctx.Done():
		s.leave(context.WithoutCancel(ctx))
	case reply := <-s.closing:
		// If the supervisor dies now, its processes die with it.
		closed, done := context.WithCancel(ctx)
		go func() {
			defer done()
			s.close(closed, reply)
			if s.member != nil {
				s.member.Leave()
			}
		}()
		select {
		case <-closed.Done():
			s.leave(ctx)
		case <-s.supervisor.Lost():
			done()
			return s.afterLoss(ctx, stop)
		}
	case <-s.supervisor.Lost():
		if ctx.Err() == nil {
			return s.afterLoss(ctx, stop)
		}
	}
	stop()
	return nil
}

// leaveBound is the maximum time that an exiting side waits for the supervisor's answer.
const leaveBound = time.Second

// leave reports to the supervisor that this side has nothing more to report.
func (s *side) leave(ctx context.Context) {
	ctx, done := context.WithTimeout(ctx, leaveBound)
	defer done()
	if err := s.supervisor.Leave(ctx); err != nil {
		s.log.Debug("could not notify the supervisor of the exit", zap.Error(err))
	}
}

// afterLoss kills what the supervisor left behind. The supervisor's processes died with it, but
// their children may have left their sessions. A replacement host worker waits for this sweep and
// then needs this host worker's addresses, although this host worker's polls may take longer to
// finish.
func (s *side) afterLoss(ctx context.Context, stop func()) error {
	s.unlisten()
	var polls sync.WaitGroup
	polls.Go(stop)
	defer polls.Wait()
	n, err := s.supervisor.SweepAfterLoss(context.WithoutCancel(ctx))
	s.log.Warn("the supervisor has exited", zap.Int("swept", n))
	return errors.Join(errors.New("the supervisor has exited"), err)
}

// untilServed is the time between attempts to reach the server. untilToldAgain is the time between
// warnings that report that the server does not answer.
var (
	untilServed    = retry.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}
	untilToldAgain = retry.Backoff{First: 30 * time.Second, Most: time.Hour}
)

// dial connects, and retries until the server answers. The supervisor can wait, but processes need
// a side as soon as the server is back.
func (s *side) dial(ctx context.Context) (client.Client, error) {
	to := s.Server
	to.Identity, to.Metrics = s.identity, s.metered
	var told time.Time
	for again, quiet := untilServed, untilToldAgain; ; {
		c, err := connect.Dial(ctx, to, sdkLogger{s.log}, 10*time.Second,
			grpc.WithChainUnaryInterceptor(s.asked.intercept), grpc.WithStatsHandler(s.known))
		if err == nil {
			return c, nil
		}
		if ctx.Err() == nil && !time.Now().Before(told) {
			told = time.Now().Add(quiet.Next())
			s.log.Warn("no connection to the Temporal server; trying again", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.supervisor.Lost():
			return nil, errors.New("the supervisor has exited")
		case <-time.After(again.Next()):
		}
	}
}

func (s *side) logRoot() string {
	return cmp.Or(s.LogRoot, filepath.Join(s.StateDir, "logs"))
}

// close lets runs end with a result when their owner is gone, while the supervisor stops their
// processes.
func (s *side) close(ctx context.Context, reply supervisor.ClosingReply) {
	s.log.Info("the supervisor is closing")
	s.sayReady(false)
	if reply.OwnerGone && s.Server.Socket != "" {
		return // the server could be reached only through the owner
	}
	// The supervisor limits how long all of this may take, and kills this process when the time is
	// up.
	if reply.OwnerGone && s.Owned {
		for _, run := range s.host.CancelRuns(ctx) {
			s.server.AwaitRun(ctx, run.WorkflowID, run.RunID)
		}
	}
	s.host.AwaitIdle(ctx)
}

// sayReady sets the readiness that the metrics server reports.
func (s *side) sayReady(ready bool) {
	if s.metrics != nil {
		s.metrics.Ready.Store(ready)
	}
}

// sayServing reports to the supervisor that this host's queues are served.
func (s *side) sayServing(ctx context.Context) {
	if err := s.supervisor.Serving(ctx); err != nil {
		s.log.Debug("could not notify the supervisor that its host is served", zap.Error(err))
	}
}

// sayMembership returns a function that reports, once for each change, whether the fleet accepts
// this host. The supervisor is notified only of the first acceptance.
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
			s.log.Info("this host is in the queue again")
		}
	}
}
