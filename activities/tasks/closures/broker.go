package closures

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Config configures a [Broker].
type Config struct {
	Log *zap.Logger
	// Queue is the task queue of the host worker.
	Queue string
	// Life tells the broker from earlier and later ones.
	Life string
	// Restart stops the process of a task because it does not end a call although the broker
	// has asked for that. [Broker.ProcessEnded] must follow; until it does, Restart is called
	// again. Restart may block.
	Restart func(task string)
	// Report reports all serving tasks, sorted, to the queue, whenever they have changed. It
	// is called again after an error.
	Report func(ctx context.Context, serving []closure.ServingTask) error
	// Left, if not nil, is called when the last process of a task that serves here has left in
	// order.
	Left func(task string)
	// Ended, if not nil, is called with the outcome of each closure that ends here. It must
	// not block.
	Ended func(closure.OutcomeKind)
}

// Broker gives the closures of one run to the run's tasks on this host.
type Broker struct {
	Config
	started time.Time
	ctx     context.Context // ends with the broker
	end     context.CancelFunc

	mu sync.Mutex // guards what follows
	// calls has the closures that the host has, by ID, and queue those that no process has.
	calls map[uint64]*call
	queue []*call
	// resources has the definitions of resources.
	resources map[uint64]closure.Resource
	processes map[processKey]*process
	// gone are processes that have ended.
	gone map[processKey]bool
	// endedIn is the call in which the last serving process of a task ended, until another
	// process serves or the last one leaves in order.
	endedIn map[string]string
	// lastCall numbers calls. It does not start at 0, so that the numbers differ from those that
	// an earlier broker used.
	lastCall uint64
	// taken is the number of batches that the host has from the queue of all hosts, or is about
	// to get. changed is closed when that may change.
	taken   int
	changed chan struct{}

	// reporting is armed while changes are gathered for a report; reported is the last report.
	reporting *time.Timer
	reported  []closure.ServingTask
	// due has an element while a report must be sent, or sent again.
	due     chan struct{}
	reports sync.WaitGroup
}

// call is a closure that the host has.
type call struct {
	closure.Closure
	batch *batch // that waits for it; nil after its end
	// process has it, under that number, since then.
	process *process
	number  uint64
	begun   time.Time
	told    bool // to end
	timer   *time.Timer
	// outcome is set once it has ended.
	outcome *closure.Outcome
	// since is the time of its outcome, or at which its last batch ended.
	since time.Time
}

// ErrClosed is returned after the broker was closed.
var ErrClosed = errors.New("the host is being stopped")

// NewBroker returns a broker that holds nothing.
func NewBroker(c Config) *Broker {
	ctx, end := context.WithCancel(context.Background())
	b := &Broker{
		Config: c, started: time.Now(), ctx: ctx, end: end,
		calls: map[uint64]*call{}, resources: map[uint64]closure.Resource{},
		processes: map[processKey]*process{}, gone: map[processKey]bool{}, endedIn: map[string]string{},
		lastCall: uint64(time.Now().UnixMicro()), changed: make(chan struct{}), due: make(chan struct{}, 1),
	}
	b.reports.Go(b.sendReports)
	return b
}

// Close ends all waiting. The processes ask again, and reach the next broker.
func (b *Broker) Close() {
	defer b.reports.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
	if b.reporting != nil {
		b.reporting.Stop()
	}
	for _, c := range b.calls {
		c.stopTimer()
	}
	for _, p := range b.processes {
		p.unwatch()
	}
}

func (b *Broker) isClosed() bool { return b.ctx.Err() != nil }

func (c *call) stopTimer() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}

// Reserve waits until the host can take another batch: each may keep one slot busy. The caller
// must call Release when the batch has ended, or has not come.
func (b *Broker) Reserve(ctx context.Context) error {
	for {
		b.mu.Lock()
		if b.taken < b.spare() {
			b.taken++
			b.mu.Unlock()
			return nil
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-b.ctx.Done():
			<-ctx.Done()
			return ctx.Err()
		}
	}
}

// Release ends a reservation.
func (b *Broker) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken--
	b.change()
}

// spare returns the number of slots for batches of the queue of all hosts. Calls that such a
// batch no longer waits for take the others.
func (b *Broker) spare() (n int) {
	for _, p := range b.processes {
		if p.serves() {
			n += p.slots
		}
		for _, c := range p.has {
			if c.batch == nil || c.batch.own {
				n--
			}
		}
	}
	return n
}

// change wakes those who wait in Reserve.
func (b *Broker) change() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// dispatch gives waiting closures to waiting processes.
func (b *Broker) dispatch() {
	for _, p := range b.processes {
		if p.request == nil {
			continue
		}
		if p.give(b); p.hasNews() {
			b.answer(p)
		}
	}
}

// give gives closures to a process, one for each free slot.
func (p *process) give(b *Broker) {
	if !p.serves() || p.unread != nil {
		return
	}
	for free := p.request.free; free > 0; free-- {
		i := slices.IndexFunc(b.queue, func(c *call) bool { return c.Task == "" || c.Task == p.task })
		if i < 0 {
			return
		}
		c := b.queue[i]
		b.queue = slices.Delete(b.queue, i, i+1)
		b.lastCall++
		c.process, c.number, c.begun = p, b.lastCall, time.Now()
		p.has[c.ID] = c
		if p.unread == nil {
			p.unread = &unread{released: p.released}
			p.released = nil
			p.news++
		}
		p.unread.calls = append(p.unread.calls, c)
		for _, id := range c.Resources {
			if r, ok := b.resources[id]; ok && !p.built[id] {
				p.built[id] = true
				p.unread.resources = append(p.unread.resources, r)
			}
		}
		if c.batch != nil {
			c.batch.progress = time.Now()
		}
	}
}
