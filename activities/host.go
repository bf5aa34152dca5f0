package activities

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/hostcheck"
	"github.com/clusterrun/clusterrun/activities/process/sampling"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/metrics"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/closures"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/activities/tasks/witness"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// Config configures a [Host].
type Config struct {
	// Name is the name under which specs pin tasks to this host.
	Name string
	// Instance distinguishes this host worker from others of the same name.
	Instance string
	// StateDir is the directory in which plans are kept.
	StateDir string
	// LogRoot is the directory for the logs of runs without a log directory of their own.
	LogRoot string
	// Retention says how long the logs of ended runs are kept. If nil, they are not removed.
	Retention *retention.Policy
	// LogsCopiedTo is the directory, on the machine of the owner, to which the owner copies
	// everything below LogRoot. If it is set, all output goes to files, and runs get the paths
	// of the copies.
	LogsCopiedTo string
	// Advertise is the address at which tasks of other hosts reach the tasks of this host. The
	// default is Name.
	Advertise string
	// Slots bounds the tasks on this host. 0 means no limit.
	Slots int
	// Oversubscribe reports whether the only run here may have more tasks than Slots.
	Oversubscribe bool
	// Owned reports whether runs end with the owner of this worker.
	Owned bool
	// OwnersOutput reports whether the owner has an output for streams that go to no file.
	OwnersOutput bool
	// Environ is the environment that processes here inherit, and Process the one whose limits
	// and processors they inherit. The default is this process.
	Environ []string
	Process int
	// Env has variables for all processes here, as NAME=VALUE. The spec of a run can override
	// them.
	Env []string
	// Foreground is the task that gets the owner's stdin, stdout and stderr, or empty if no
	// task gets them.
	Foreground string
	// Stdin is the task that gets the owner's stdin, or empty if no task gets it.
	Stdin string

	// Guard has the policy of this host and its audit log. If nil, everything is allowed.
	Guard      *guard.Guard
	Supervisor supervisor.API
	Server     Server
	// Files serves the files of runs to others. If nil, they can be read only on this host.
	Files *hostservice.Server
	// Rounds keeps the barriers across hosts at which tasks here wait. If nil, there are no
	// such barriers.
	Rounds barriers.Server
	// Runs sends requests of tasks to their runs. If nil, tasks cannot make any.
	Runs taskservices.Runs
	// Queues returns a client of the queue of closures of a run, which tasks here serve and
	// schedule. If nil, tasks can do neither.
	Queues func(run spec.RunRef) (*closurequeue.Client, error)
	// Poll polls for the batches of closures of a run, until stop is called.
	Poll func(run spec.RunRef, b *closures.Broker) (stop func())
	// Fleet receives a report when a run no longer holds anything on this host, unless the run
	// itself reports it. If nil, this host is in no fleet.
	Fleet Fleet
	// Checks decide whether this host is fit for the tasks of a generation. If nil, it is.
	Checks *hostcheck.Checker
	// Queue is the task queue of this host worker's own activities.
	Queue string
	// Identity is the name of this process on the server.
	Identity string
	// AskedAt, if not nil, returns when the poll for the activity with that token was sent, in
	// nanoseconds of CLOCK_BOOTTIME, or 0 if that is unknown.
	AskedAt func(taskToken []byte) int64
	// Metrics, if not nil, receives the metrics of this host.
	Metrics *metrics.Metrics
	Log     *zap.Logger
}

// environ returns the environment that processes here inherit.
func (c *Config) environ() []string {
	if c.Environ == nil {
		return os.Environ()
	}
	return c.Environ
}

// getenv returns a variable of that environment.
func (c *Config) getenv(name string) (value string) {
	for _, kv := range c.environ() {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// Server is the part of the Temporal server that a host uses in addition to its activities.
type Server interface {
	// RecordActivityHeartbeat replaces the heartbeat of the activity context, because a
	// failure of the latter ends the context: a server that is away for a second would look
	// like a cancellation.
	RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error
	// CancelRun cancels the run that began with that execution, and DescribeRun describes the
	// current execution of that run, or the last one.
	CancelRun(ctx context.Context, workflowID, began string) error
	DescribeRun(ctx context.Context, workflowID, began string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
	// TakeOver has the server offer the tasks again that an earlier process holds.
	TakeOver(ctx context.Context, run runkey.Run, by server.Taker) error
	// ReadShared reads a value that the run shares with its hosts.
	ReadShared(ctx context.Context, at hostapi.Shared, value any) error
	// Identity returns an ID of the server and its database. It is empty if the server has
	// none.
	Identity(ctx context.Context, namespace string) (string, error)
}

// Fleet is the part of the fleet that a host uses.
type Fleet interface {
	// Freed reports that the run no longer holds anything on this host.
	Freed(ctx context.Context, run fleet.Run) error
	// Rejoin makes this host join again, with what runs hold here now.
	Rejoin()
}

// Host has the activities of one host.
type Host struct {
	*core
	leases       *leases
	gate         *gate
	ships        *shipping
	checks       *checks
	reservations *reservations
	stops        *stopper
	captures     *captures
	silenced     *silenced
	collectors   *collectors
	watch        *reconciler
	witnesses    *witness.Witnesses

	samples *sampling.Sampler
	// pythonHook returns the directory for taskenv.Process.PythonHook.
	pythonHook func() string
}

// NewHost opens the plans in c.StateDir. Nothing runs until a worker polls. Tasks that an
// earlier host worker left are served from [Host.ServeTasks] on, and their runs are watched
// from [Host.Reconcile] on.
func NewHost(c Config) (*Host, error) {
	plans, err := openPlans(c.StateDir)
	if err != nil {
		return nil, err
	}
	for _, path := range plans.damaged {
		c.Log.Error("a host's file about a run was damaged and is set aside; the run is lost on this host", zap.String("file", path))
	}
	if c.Metrics == nil {
		c.Metrics = metrics.New()
	}
	h := assemble(&core{Config: c, shipped: shipped.Open(c.StateDir), group: background.NewGroup(), plans: plans, now: time.Now})
	h.witnesses = witness.New(h.reachesServer, h.passOn, func(run runkey.Run) (witness.Plan, error) {
		p, err := plans.get(run)
		if err != nil {
			return witness.Plan{}, err
		}
		return witness.Plan{Generation: p.Generation, Denied: p.Denied}, nil
	})
	h.watch.witnesses = h.witnesses
	if c.Files != nil {
		c.Files.AnswerBy(h.witnesses.Answer)
	}
	h.samples = &sampling.Sampler{Supervisor: c.Supervisor, Group: h.group, Log: c.Log}
	h.pythonHook = sync.OnceValue(func() string { return installHook(c) })
	if c.Files != nil {
		h.shipped = c.Files.Archives
	}
	h.shipped.Volatile = c.Owned
	h.services, err = taskservices.New(taskservices.Config{
		Host: c.Name, Queue: c.Queue, StateDir: c.StateDir, Plans: plans,
		Rounds: c.Rounds, Runs: c.Runs, Queues: c.Queues, Poll: c.Poll, Restart: h.stops.restart, MayServe: h.gate.mayServe, Getenv: c.getenv, Metrics: c.Metrics, Log: c.Log,
	})
	return h, err
}

// Close ends everything that the host does outside its activities, and waits for it. Processes
// continue, and their tasks ask again, at the next host worker.
func (h *Host) Close() {
	h.group.Close()
	h.services.Close()
}

// RemoveSockets removes the sockets of all tasks. It is for a host without a successor: its
// processes have ended, and no run will be released later.
func (h *Host) RemoveSockets() { h.services.Sweep(nil) }

// AwaitOver returns when the run has released this host or was never here, or when ctx is
// done.
func (h *Host) AwaitOver(ctx context.Context, run runkey.Run) {
	for {
		changes := h.plans.changes.Latest()
		if p, err := h.plans.get(run); err != nil || p.Released {
			return
		}
		select {
		case <-changes.Later():
		case <-ctx.Done():
			return
		}
	}
}

// SlowestRatio returns how many times the median of the others the slowest task here takes for a
// step; see [taskservices.Services.SlowestRatio].
func (h *Host) SlowestRatio() float64 { return h.services.SlowestRatio() }

// Brokers returns the brokers through which the tasks of this host call closures.
func (h *Host) Brokers() *taskservices.Brokers { return h.services.Brokers() }

// core is the state that the parts of a host share.
type core struct {
	Config
	group    *background.Group
	plans    *planStore
	services *taskservices.Services
	shipped  *shipped.Store
	now      func() time.Time
}

// The parts of a host, each of which decides one thing.
type (
	// gate asks the policy, and writes the audit log.
	gate struct {
		*core
		ships *shipping
	}
	// shipping fetches the archives of runs, and finds their directories.
	shipping struct{ *core }
	// checks finds problems that would keep a task from starting here.
	checks struct {
		*core
		gate  *gate
		ships *shipping
	}
	// reservations takes tasks: their slots, ports and user.
	reservations struct {
		*core
		stops    *stopper
		ships    *shipping
		claiming sync.Mutex // held while the slots of a run are claimed; see claimSlots
	}
	// stopper stops processes, each with the signal and grace of its task.
	stopper struct {
		*core
		gate *gate
	}
	// captures writes the stacks of processes to files.
	captures struct{ *core }
	// silenced carries out on_silence.
	silenced struct {
		*core
		leases   *leases
		gate     *gate
		checks   *checks
		stops    *stopper
		captures *captures
	}
	// collectors collect the filtered lines of the runs that ask for them, from the first task
	// of a run here to its release. They end with this host worker, and the next one starts
	// them again.
	collectors struct {
		*core
		mu    sync.Mutex
		byRun map[runkey.Run]*tasklog.Collector
	}
	// reconciler watches the runs that hold something here without a lease.
	reconciler struct {
		*core
		leases       *leases
		gate         *gate
		ships        *shipping
		stops        *stopper
		reservations *reservations
		collectors   *collectors
		witnesses    *witness.Witnesses

		// strangers are the runs for which a changed server has been logged.
		strangers sync.Map // of runkey.Run
	}
)

// assemble returns a host of parts that share c.
func assemble(c *core) *Host {
	h := &Host{core: c, leases: newLeases(), ships: &shipping{c}, captures: &captures{c}, collectors: &collectors{core: c}}
	h.gate = &gate{core: c, ships: h.ships}
	h.stops = &stopper{core: c, gate: h.gate}
	h.checks = &checks{core: c, gate: h.gate, ships: h.ships}
	h.reservations = &reservations{core: c, stops: h.stops, ships: h.ships}
	h.silenced = &silenced{core: c, leases: h.leases, gate: h.gate, checks: h.checks, stops: h.stops, captures: h.captures}
	h.watch = &reconciler{
		core: c, leases: h.leases, gate: h.gate, ships: h.ships, stops: h.stops,
		reservations: h.reservations, collectors: h.collectors,
	}
	return h
}
