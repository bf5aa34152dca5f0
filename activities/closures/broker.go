package closures

import (
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/workflows/closure"
)

const (
	// settleAfter is how long a broker that follows another one waits at most for the
	// processes that know it before it believes that a closure is held by nobody. They ask five
	// times a second, unless they are busy with something that lets nothing else run.
	settleAfter = 2 * time.Second
	// reportAfter gathers changes of what serves into one report.
	reportAfter = 3 * time.Millisecond
)

// Config is what a [Broker] needs.
type Config struct {
	Log *zap.Logger
	// Restart stops the process of a task, because it does not end a call that it was
	// told to end. [Broker.ProcessEnded] is to follow; where it does not, Restart is
	// called again. It may take its time.
	Restart func(task string)
	// Changed is told all processes that serve, sorted, whenever that has changed.
	Changed func([]closure.ServingTask)
	// Ended is told how each closure has ended here; nil: nobody is. It must not block.
	Ended func(closure.OutcomeKind)
	// Earlier are the processes, by task, that a broker before this one may have given
	// closures. A task without any: nobody knows which.
	Earlier map[string][]string
}

// Broker has the closures of one run that its tasks on this host are to call.
type Broker struct {
	Config
	started time.Time
	// closed is closed by Close.
	closed chan struct{}

	mu sync.Mutex
	// entries are all closures that are held, by ID.
	entries   map[uint64]*entry
	queue     queue
	resources resources
	// released are the resources that nobody needs any more, as far as the queue has said.
	released  ranges
	processes map[processKey]*process
	// slots is how many those have that serve.
	slots int
	// waiting are the processes with a request that waits, the longest first.
	waiting []*process
	// known are the functions of each task, of its last process where none serves.
	known map[string]map[string]bool
	// gone are processes that have ended, and suspects closures that may have ended
	// theirs.
	gone memory[processKey]
	// endedIn is the call in the middle of which the last process of a task to serve
	// ended, until another one serves or the last leaves in order.
	endedIn  map[string]string
	suspects memory[uint64]
	// delivered are the last outcomes that leases have returned.
	delivered delivered
	// cancelled are closures that are not to be called, whether they are held or not,
	// and grace is what a call has to end.
	cancelled memory[uint64]
	grace     time.Duration
	// calls counts calls. It does not start at 0, so that no call of an earlier broker
	// has the number of one of this.
	calls uint64
	// finished counts the closures that have ended here.
	finished int
	// successor reports whether another broker had the closures before this one, and
	// awaited are the processes that it is known to have served and that have neither asked
	// since nor ended. One without a name stands for all of its task.
	successor bool
	awaited   map[processKey]bool
	settled   bool
	settling  *time.Timer
	// forgetting is armed while some closure has no lease.
	forgetting *time.Timer
	// reporting is armed while a report is due; the last one is reported.
	reporting *time.Timer
	reported  []closure.ServingTask
	told      bool // there was a report
	// stranding is armed while something waits that nobody here serves.
	stranding *time.Timer
	// silence is armed while processes have closures.
	silence *time.Timer

	// telling is held while Changed is called, so that reports come in their order.
	telling sync.Mutex
}

// ErrClosed says that the broker was closed.
var ErrClosed = errors.New("the host is being stopped")

// NewBroker makes one that holds nothing.
func NewBroker(c Config) *Broker {
	b := &Broker{
		Config: c, started: time.Now(), closed: make(chan struct{}),
		entries: map[uint64]*entry{}, queue: queue{}, resources: newResources(),
		processes: map[processKey]*process{}, known: map[string]map[string]bool{}, endedIn: map[string]string{},
		gone: newMemory[processKey](maxGone), suspects: newMemory[uint64](maxSuspects),
		cancelled: newMemory[uint64](maxCancelled),
		calls:     uint64(time.Now().UnixMicro()),
		successor: len(c.Earlier) > 0, awaited: map[processKey]bool{},
	}
	b.follow(c.Earlier)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.settling = time.AfterFunc(settleAfter, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.settle()
	})
	return b
}

// Close ends all that waits. Processes ask again, the next broker.
func (b *Broker) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isClosed() {
		return
	}
	close(b.closed)
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

func (b *Broker) isClosed() bool {
	select {
	case <-b.closed:
		return true
	default:
		return false
	}
}
