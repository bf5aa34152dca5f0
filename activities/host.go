package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/barriers"
	"github.com/clusterrun/clusterrun/activities/guard"
	"github.com/clusterrun/clusterrun/activities/hostservice"
	"github.com/clusterrun/clusterrun/activities/internal/background"
	"github.com/clusterrun/clusterrun/activities/metrics"
	"github.com/clusterrun/clusterrun/activities/retention"
	"github.com/clusterrun/clusterrun/activities/runkey"
	"github.com/clusterrun/clusterrun/activities/shipped"
	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/activities/taskservices"
	"github.com/clusterrun/clusterrun/workflows/fleet"
)

// Config is what a [Host] needs.
type Config struct {
	// Name is the name under which specs pin tasks to this host.
	Name string
	// Instance tells this host worker from another of the same name.
	Instance string
	// StateDir is where plans are kept.
	StateDir string
	// KeyDir is the state directory with the [tasklog.ValueKey]. Default: StateDir.
	KeyDir string
	// LogRoot is where runs without a log directory of their own keep logs.
	LogRoot string
	// Retention is how long the logs of runs that have ended are kept. None: nobody removes
	// them.
	Retention *retention.Policy
	// LogsCopiedTo is the directory, on the machine of the owner, to which the owner copies
	// what is below LogRoot. All output goes to files then, and runs are told where their
	// logs lie there. None: logs stay here.
	LogsCopiedTo string
	// Advertise is the address by which tasks of other hosts reach those of this one.
	// Default: Name.
	Advertise string
	// Slots bounds the tasks on this host; 0 means no bound.
	Slots int
	// Owned reports whether runs end with the owner of this worker.
	Owned bool
	// OwnersOutput reports whether the owner has an output for streams that go to no
	// file.
	OwnersOutput bool
	// Env are variables that all processes get here, as NAME=VALUE, where their spec sets no
	// other value.
	Env []string
	// Foreground is the task that gets the owner's stdin, stdout and stderr; none:
	// no task does.
	Foreground string
	// Stdin is the task that gets the owner's stdin, or [AllTasks]; none: no task does.
	Stdin string

	// Guard has the policy of this host and its audit log. None: everything is allowed.
	Guard      *guard.Guard
	Supervisor supervisor.API
	Server     Server
	// Files serves the files of runs to others. None: they are read here only.
	Files *hostservice.Server
	// Rounds keeps the barriers across hosts at which tasks here wait. None: there are
	// no such barriers.
	Rounds barriers.Server
	// Runs are asked for what tasks want of their run. None: they cannot ask for that.
	Runs taskservices.Runs
	// Queues are the queues of closures that tasks here serve and schedule. None: they
	// cannot.
	Queues taskservices.Queues
	// Fleet is told of what a run holds here no longer, where nobody else tells it. None:
	// this host is in no fleet.
	Fleet Fleet
	// Queue is that of this host worker's own activities.
	Queue string
	// AskedAt returns when the server was asked for the activity with that token, in
	// nanoseconds of CLOCK_BOOTTIME; 0: nobody knows. None: nobody knows of any.
	AskedAt func(taskToken []byte) int64
	// Metrics count what happens here. None: nobody is told.
	Metrics *metrics.Metrics
	Log     *zap.Logger
}

// AllTasks stands for all tasks in [Config.Stdin]. The owner's stdin is a file then.
const AllTasks = "all"

// Server is what a host asks of the Temporal server beside executing activities.
type Server interface {
	// RecordActivityHeartbeat is used instead of the activity context's own
	// heartbeat, because a failure of that one ends the context: a server that
	// is away for a second would look like a cancellation.
	RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error
	// CancelRun cancels the run that began with that execution, and DescribeRun
	// describes the execution that has it now, or has ended it.
	CancelRun(ctx context.Context, workflowID, began string) error
	DescribeRun(ctx context.Context, workflowID, began string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
	// Identity tells the server, and its database, from others. It is empty where the
	// server does not say.
	Identity(ctx context.Context, namespace string) (string, error)
}

// Fleet is what a host asks of its fleet.
type Fleet interface {
	// Freed says that the run holds nothing on this host any more.
	Freed(ctx context.Context, run fleet.Run) error
}

// Host has the activities of one host.
type Host struct {
	Config
	group      *background.Group
	plans      *planStore
	collectors collectors
	services   *taskservices.Services
	shipped    *shipped.Store
	samples    samples
	silences   sync.Map // from runkey.Task to time.Duration

	// strangers are the runs of which it was said that the server is another one.
	strangers sync.Map // of runkey.Run

	mu        sync.Mutex
	attached  map[runkey.Task]int // RunTask calls that hold a lease, by task
	nudge     chan struct{}       // has the reconciler look now
	lastHeard time.Time           // of the server
	ended     chan struct{}       // has an element after a lease ended
	now       func() time.Time
}

// NewHost opens the plans in c.StateDir. Nothing runs until a worker polls; tasks that an
// earlier host worker left are served from [Host.ServeTasks] on, and their runs looked
// after from [Host.Reconcile] on.
func NewHost(c Config) (*Host, error) {
	plans, err := openPlans(c.StateDir)
	if err != nil {
		return nil, err
	}
	for _, path := range plans.damaged {
		c.Log.Error("a plan was damaged and is set aside; its run is lost to this host", zap.String("file", path))
	}
	if c.Metrics == nil {
		c.Metrics = metrics.New()
	}
	h := &Host{
		Config:    c,
		shipped:   shipped.Open(c.StateDir),
		group:     background.NewGroup(),
		plans:     plans,
		attached:  map[runkey.Task]int{},
		nudge:     make(chan struct{}, 1),
		ended:     make(chan struct{}, 1),
		now:       time.Now,
		lastHeard: time.Now(),
	}
	if c.Files != nil {
		h.shipped = c.Files.Archives
	}
	h.shipped.Volatile = c.Owned
	h.services, err = taskservices.New(taskservices.Config{
		Host: c.Name, Queue: c.Queue, StateDir: c.StateDir, Plans: plans,
		Rounds: c.Rounds, Runs: c.Runs, Queues: c.Queues, Restart: h.restart, MayServe: h.mayServe, Metrics: c.Metrics, Log: c.Log,
	})
	return h, err
}

// Close ends all that the host does beside its activities, and waits for it. Processes go
// on, and their tasks ask again, the next host worker.
func (h *Host) Close() {
	h.group.Close()
	h.services.Close()
}

// RemoveSockets removes the sockets of all tasks. It is for a host that has no successor: its
// processes have ended, and no run is released any more.
func (h *Host) RemoveSockets() { h.services.Sweep(nil) }

// AwaitOver returns when the run has given this host back, or was never here, or when ctx
// is done.
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

// Brokers returns those that have the tasks of this host call closures.
func (h *Host) Brokers() *taskservices.Brokers { return h.services.Brokers() }

func (h *Host) attach(k runkey.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attached[k]++
}

// detach ends a lease and has the reconciler look at once: the reason may be
// that the run was closed.
func (h *Host) detach(k runkey.Task) {
	h.mu.Lock()
	if h.attached[k]--; h.attached[k] <= 0 {
		delete(h.attached, k)
		h.silences.Delete(k)
	}
	h.mu.Unlock()
	for _, c := range []chan struct{}{h.nudge, h.ended} {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (h *Host) isAttached(k runkey.Task) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.attached[k] > 0
}
