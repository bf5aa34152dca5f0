package activities

import (
	"context"
	"os"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/logs/hostservice"
	"github.com/clusterrun/clusterrun/activities/logs/retention"
	"github.com/clusterrun/clusterrun/activities/logs/shipped"
	"github.com/clusterrun/clusterrun/activities/process/hostcheck"
	"github.com/clusterrun/clusterrun/activities/process/resources"
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/metrics"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/activities/tasks/closures"
	"github.com/clusterrun/clusterrun/activities/tasks/taskservices"
	"github.com/clusterrun/clusterrun/activities/trust/guard"
	"github.com/clusterrun/clusterrun/workflows/fleet"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// Config configures a [Host].
type Config struct {
	// Name is the name that specs can pin tasks to.
	Name string
	// Instance distinguishes this host worker from host workers of the same name.
	Instance string
	// StateDir is the directory for plans.
	StateDir string
	// LogRoot is the directory for the logs of runs without their own log directory.
	LogRoot string
	// Retention limits the logs of ended runs. If nil, they are not removed.
	Retention *retention.Policy
	// LogsCopiedTo is the directory on the owner's machine that the owner copies LogRoot to. If
	// set, all output goes to files, and runs get the copies' paths.
	LogsCopiedTo string
	// Advertise is the address of this host's tasks for other hosts' tasks. The default is Name.
	Advertise string
	// Slots limits the number of tasks on this host. 0 means no limit.
	Slots int
	// Oversubscribe reports whether the host's only run may have more tasks than Slots.
	Oversubscribe bool
	// Owned reports whether runs end with the owner of this worker.
	Owned bool
	// OwnersOutput reports whether streams without a file go to the owner's output.
	OwnersOutput bool
	// Environ is the environment that processes on this host inherit. They inherit limits and
	// processors from Process. Both default to this process.
	Environ []string
	Process int
	// HookDir is the directory for the module that Python programs import first. Default: StateDir.
	HookDir string
	// Env contains variables for all processes on this host, as NAME=VALUE. A run's spec can
	// override them.
	Env []string
	// Foreground is the task that gets the owner's stdin, stdout and stderr, or empty for none.
	Foreground string
	// Stdin is the task that gets the owner's stdin, or empty for none.
	Stdin string

	// Guard is this host's policy and audit log. If nil, everything is allowed.
	Guard      *guard.Guard
	Supervisor supervisor.API
	Server     Server
	// Files serves runs' files to other hosts. If nil, the files can be read only on this host.
	Files *hostservice.Server
	// Rounds holds the barriers across hosts. If nil, there are no such barriers.
	Rounds barriers.Server
	// Runs sends tasks' requests to their runs. If nil, tasks cannot make requests.
	Runs taskservices.Runs
	// Queues returns a client of a run's closure queue, through which this host's tasks serve and
	// schedule closures. If nil, tasks can do neither.
	Queues func(run spec.RunRef) (*closurequeue.Client, error)
	// Poll polls for a run's batches of closures until stop is called.
	Poll func(run spec.RunRef, b *closures.Broker) (stop func())
	// Fleet is notified when a run no longer holds anything on this host, unless the run itself
	// notifies it. If nil, this host is not in a fleet.
	Fleet Fleet
	// Checks decide whether this host is fit for a generation's tasks. If nil, the host is always
	// fit.
	Checks *hostcheck.Checker
	// Queue is the task queue of this host worker's own activities.
	Queue string
	// Identity is this process's name on the server.
	Identity string
	// AskedAt, if not nil, returns when the poll for the activity with the given token was sent, in
	// nanoseconds of CLOCK_BOOTTIME, or 0 if that is unknown.
	AskedAt func(taskToken []byte) int64
	// Metrics, if not nil, receives this host's metrics.
	Metrics *metrics.Metrics
	Log     *zap.Logger
}

// environ returns the environment that processes on this host inherit.
func (c *Config) environ() []string {
	if c.Environ == nil {
		return os.Environ()
	}
	return c.Environ
}

// getenv returns a variable that processes inherit.
func (c *Config) getenv(name string) string { return lookup(c.environ(), name) }

// Server is the part of the Temporal server that a host uses in addition to its activities.
type Server interface {
	// RecordActivityHeartbeat replaces the activity context's heartbeat, which cancels the context
	// when it fails, so a short outage would look like a cancellation.
	RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error
	// CancelRun cancels the run that began with the given execution. DescribeRun describes that
	// run's current or last execution.
	CancelRun(ctx context.Context, workflowID, began string) error
	DescribeRun(ctx context.Context, workflowID, began string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
	// TakeOver makes the server reoffer the tasks held by an earlier process.
	TakeOver(ctx context.Context, run runkey.Run, by server.Taker) error
	// ReadShared reads a value that the run shares with its hosts.
	ReadShared(ctx context.Context, at hostapi.Shared, value any) error
	// Identity returns an ID of the server and its database, or an empty string if the server does
	// not provide one. KnownIdentity returns the same ID, and sends a request only if the
	// connection is new.
	Identity(ctx context.Context, namespace string) (string, error)
	KnownIdentity(ctx context.Context, namespace string) (string, error)
}

// Fleet is the part of the fleet that a host uses.
type Fleet interface {
	// Freed reports that the run no longer holds anything on this host.
	Freed(ctx context.Context, run fleet.Run) error
	// Rejoin makes this host join again and report what runs hold on it now.
	Rejoin()
}

// Host implements one host's activities.
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
	watch        *reconciler
	witnesses    *hostservice.Witnesses

	samples *resources.Sampler
	// pythonHook returns the directory for taskenv.Process.PythonHook.
	pythonHook func() string
}

// NewHost opens the plans in c.StateDir. Nothing runs until a worker polls. [Host.ServeTasks]
// starts serving the tasks that an earlier host worker left, and [Host.Reconcile] starts watching
// their runs.
func NewHost(c Config) (*Host, error) {
	plans, err := openPlans(c.StateDir)
	if err != nil {
		return nil, err
	}
	for _, path := range plans.damaged {
		c.Log.Error("a host's file about a run was damaged and has been set aside; the run is lost on this host", zap.String("file", path))
	}
	if c.Metrics == nil {
		c.Metrics = metrics.New()
	}
	h := assemble(&core{Config: c, shipped: shipped.Open(c.StateDir), group: background.NewGroup(), plans: plans, now: time.Now})
	h.witnesses = hostservice.NewWitnesses(h.reachesServer, h.passOn, func(run runkey.Run) (hostservice.WitnessPlan, error) {
		p, err := plans.get(run)
		if err != nil {
			return hostservice.WitnessPlan{}, err
		}
		return hostservice.WitnessPlan{Generation: p.Generation, Denied: p.Denied}, nil
	})
	h.watch.witnesses = h.witnesses
	if c.Files != nil {
		c.Files.AnswerBy(h.witnesses.Answer)
	}
	h.samples = &resources.Sampler{Supervisor: c.Supervisor, Group: h.group, Log: c.Log}
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

// Close stops everything that the host does outside its activities, and waits until it has stopped.
// Processes continue, and their tasks repeat requests to the next host worker.
func (h *Host) Close() {
	h.group.Close()
	h.services.Close()
}

// RemoveSockets removes all tasks' sockets. It is for a host without a successor: its processes
// have exited, and no run will be released later.
func (h *Host) RemoveSockets() { h.services.Sweep(nil) }

// AwaitOver returns when the run has released this host or was never on it, or when ctx is done.
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

// SlowestRatio compares the step time of this host's slowest task with its other tasks' median; see [taskservices.Services.SlowestRatio].
func (h *Host) SlowestRatio() float64 { return h.services.SlowestRatio() }

// Brokers returns the brokers that this host's tasks use to call closures.
func (h *Host) Brokers() *taskservices.Brokers { return h.services.Brokers() }

// NoteQueue records a run's closure queue.
func (h *Host) NoteQueue(run runkey.Run) { h.services.NoteQueue(run) }

// core is the state shared by the parts of a host.
type core struct {
	Config
	group    *background.Group
	plans    *planStore
	services *taskservices.Services
	shipped  *shipped.Store
	now      func() time.Time
}

// The parts of a host, each with one responsibility.
type (
	// gate asks the policy, and writes the audit log.
	gate struct {
		*core
		ships *shipping
	}
	// shipping fetches runs' archives and finds the directories that they are unpacked to.
	shipping struct{ *core }
	// checks finds problems that would keep a task from starting on this host.
	checks struct {
		*core
		gate  *gate
		ships *shipping
	}
	// reservations reserves the slots, ports and users of tasks.
	reservations struct {
		*core
		stops    *stopper
		ships    *shipping
		claiming sync.Mutex // held while claiming a run's slots; see claimSlots
	}
	// stopper stops processes, each with its task's signal and grace.
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
		stops    *stopper
		captures *captures
	}
	// reconciler watches the runs that hold something on this host without a lease.
	reconciler struct {
		*core
		leases       *leases
		gate         *gate
		ships        *shipping
		stops        *stopper
		reservations *reservations
		witnesses    *hostservice.Witnesses

		// strangers contains the runs for which a changed server has been logged.
		strangers sync.Map // of runkey.Run
	}
)

// assemble returns a host of parts that share c.
func assemble(c *core) *Host {
	h := &Host{core: c, leases: newLeases(), ships: &shipping{c}, captures: &captures{c}}
	h.gate = &gate{core: c, ships: h.ships}
	h.stops = &stopper{core: c, gate: h.gate}
	h.checks = &checks{core: c, gate: h.gate, ships: h.ships}
	h.reservations = &reservations{core: c, stops: h.stops, ships: h.ships}
	h.silenced = &silenced{core: c, leases: h.leases, gate: h.gate, stops: h.stops, captures: h.captures}
	h.watch = &reconciler{
		core: c, leases: h.leases, gate: h.gate, ships: h.ships, stops: h.stops,
		reservations: h.reservations,
	}
	return h
}
