package closures

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

const (
	// settleAfter is the time that a broker waits for the processes of the broker that it
	// replaces before it assumes that they hold no closures. They ask five times a second,
	// unless they are busy with code that blocks all other threads.
	settleAfter = 2 * time.Second
	// reportAfter is the time for which changes of the serving processes are gathered into one
	// report.
	reportAfter = 3 * time.Millisecond
)

// Config configures a [Broker].
type Config struct {
	Log *zap.Logger
	// Life tells the broker from earlier and later ones.
	Life string
	// Restart stops the process of a task because it does not end a call although the broker
	// has asked for that. [Broker.ProcessEnded] must follow; until it does, Restart is called
	// again. Restart may block.
	Restart func(task string)
	// Report reports all serving processes, sorted, to the queue, whenever they have changed. It
	// is called again after an error.
	Report func(ctx context.Context, serving []closure.ServingTask) error
	// Left, if not nil, is called when the last process of a task that serves here has left in
	// order.
	Left func(task string)
	// Ended, if not nil, is called with the outcome of each closure that ends here. It must
	// not block.
	Ended func(closure.OutcomeKind)
	// Earlier are the processes, by task, that may hold closures from an earlier broker. An
	// empty list means that the processes of the task are unknown.
	Earlier map[string][]string
}

// Broker gives the closures of one run to the run's tasks on this host.
//
// It is built in layers, each of which knows only those below it, and one mutex guards all:
//
//	Broker    leases of the queue, and requests of processes
//	serving   processes that serve, and their answers
//	store     closures, and their outcomes
type Broker struct {
	serving
	// settling is armed while the processes of an earlier broker are awaited.
	settling *time.Timer
	// silence is armed while processes have closures.
	silence *time.Timer
}

// store has the closures that the broker holds.
type store struct {
	Config
	// ctx ends with the broker.
	ctx context.Context
	end context.CancelFunc

	mu sync.Mutex // guards what follows, and the other layers
	// entries has all closures that the broker holds, by ID.
	entries   map[uint64]*entry
	queue     queue
	resources resources
	// released are the resources that the queue has reported as no longer needed.
	released ranges
	// suspects are closures that may have ended their process.
	suspects memory[uint64]
	// delivered has the latest outcomes that leases have returned.
	delivered delivered
	// cancelled are closures that must not be called, whether the broker holds them or not.
	cancelled memory[uint64]
	// finished counts the closures that have ended here.
	finished int
	// forgetting is armed while some closure has no lease.
	forgetting *time.Timer
}

// serving holds the serving processes.
type serving struct {
	store
	started   time.Time
	processes map[processKey]*process
	// slots is the number of slots of all serving processes.
	slots int
	// waiting are the processes with a waiting request, longest wait first.
	waiting []*process
	// known has the functions of each task. If no process of the task serves, they are the
	// functions of its last one.
	known map[string]map[string]bool
	// gone are processes that have ended.
	gone memory[processKey]
	// endedIn is the call in which the last serving process of a task ended, until another
	// process serves or the last one leaves in order.
	endedIn map[string]string
	// grace is the time that a cancelled call may take to end.
	grace time.Duration
	// calls counts calls. It does not start at 0, so that the numbers differ from those that an
	// earlier broker used.
	calls uint64
	// successor reports whether another broker had the closures before, and awaited are the
	// processes that it served and that have neither asked since nor ended. An entry without a
	// name stands for all processes of its task. settled reports whether they are no longer
	// awaited.
	successor bool
	awaited   map[processKey]bool
	settled   bool
	// stranding is armed while a closure waits that no process here serves.
	stranding *time.Timer

	// reporting is armed while changes are gathered for a report; reported is the last report.
	reporting *time.Timer
	reported  []closure.ServingTask
	told      bool // a report was made
	// due has an element while a report must be sent, or sent again.
	due     chan struct{}
	reports sync.WaitGroup
}

// ErrClosed is returned after the broker was closed.
var ErrClosed = errors.New("the host is being stopped")

// NewBroker returns a broker that holds nothing.
func NewBroker(c Config) *Broker {
	ctx, end := context.WithCancel(context.Background())
	b := &Broker{serving: serving{
		store: store{
			Config: c, ctx: ctx, end: end, entries: map[uint64]*entry{}, resources: newResources(),
			suspects: newMemory[uint64](maxSuspects), cancelled: newMemory[uint64](maxCancelled),
		},
		started: time.Now(), processes: map[processKey]*process{}, known: map[string]map[string]bool{}, endedIn: map[string]string{},
		gone: newMemory[processKey](maxGone), calls: uint64(time.Now().UnixMicro()),
		successor: len(c.Earlier) > 0, awaited: map[processKey]bool{}, due: make(chan struct{}, 1),
	}}
	b.follow(c.Earlier)
	b.reports.Go(b.sendReports)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settling = time.AfterFunc(settleAfter, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.settle()
	})
	return b
}

// Close ends all waiting. The processes ask again, and reach the next broker.
func (b *Broker) Close() {
	defer b.reports.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
	for _, t := range []*time.Timer{b.settling, b.forgetting, b.reporting, b.stranding, b.silence} {
		if t != nil {
			t.Stop()
		}
	}
	for _, e := range b.entries {
		e.stopTimer()
	}
	for _, p := range b.processes {
		p.unwatch()
	}
}

func (b *store) isClosed() bool { return b.ctx.Err() != nil }
