package closures

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Config configures a [Broker].
type Config struct {
	Log *zap.Logger
	// Queue is the host worker's task queue.
	Queue string
	// Restart stops a task's process that does not return from a call although the broker has
	// cancelled it. [Broker.ProcessEnded] must follow. Restart may block.
	Restart func(task string) error
	// Report reports all serving tasks, sorted, to the queue, whenever they have changed. It is
	// retried after an error.
	Report func(ctx context.Context, serving []closure.ServingTask) error
	// Ended, if not nil, is called with each closure's outcome. It must not block.
	Ended func(closure.OutcomeKind)
}

// Broker gives a run's closures to the run's tasks on this host.
type Broker struct {
	Config
	started time.Time
	ctx     context.Context // done after Close
	end     context.CancelFunc

	mu sync.Mutex // guards the rest
	// calls holds the host's closures by ID, and queue those not held by a process.
	calls map[uint64]*call
	queue []*call
	// resources contains resource definitions, and released the resources that processes must drop.
	resources map[uint64]closure.Resource
	released  map[uint64]bool
	processes map[processKey]*process
	// gone holds exited processes.
	gone map[processKey]bool
	// taken counts the batches from the shared queue that this host holds or is about to get.
	// changed is closed when that may change.
	taken   int
	changed chan struct{}

	// due contains an element while a report must be sent.
	due     chan struct{}
	reports sync.WaitGroup
}

// call is a closure that the host holds.
type call struct {
	closure.Closure
	batch   *batch // waits for it; nil after it returned
	process *process
	told    bool // cancelled
	// outcome is set after the call.
	outcome *closure.Outcome
}

// ErrClosed is returned after the broker is closed.
var ErrClosed = errors.New("the host is being stopped")

// NewBroker returns a broker without closures.
func NewBroker(c Config) *Broker {
	ctx, end := context.WithCancel(context.Background())
	b := &Broker{
		Config: c, started: time.Now(), ctx: ctx, end: end,
		calls: map[uint64]*call{}, resources: map[uint64]closure.Resource{}, released: map[uint64]bool{},
		processes: map[processKey]*process{}, gone: map[processKey]bool{},
		changed: make(chan struct{}), due: make(chan struct{}, 1),
	}
	b.reports.Go(b.sendReports)
	return b
}

// Close stops all waiting. The processes retry, and reach the next broker.
func (b *Broker) Close() {
	defer b.reports.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
	for _, p := range b.processes {
		p.unwatch()
	}
}

func (b *Broker) isClosed() bool { return b.ctx.Err() != nil }

// Reserve waits until the host can take another batch, as each may keep a slot busy. The caller
// must call Release when the batch has returned, or did not arrive.
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

// Release cancels a reservation.
func (b *Broker) Release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken--
	b.change()
}

// spare returns the number of slots for batches from the shared queue. Calls abandoned by such a
// batch occupy slots.
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

// change wakes callers waiting in Reserve.
func (b *Broker) change() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// dispatch gives closures and other news to waiting processes.
func (b *Broker) dispatch() {
	for _, p := range b.processes {
		b.answer(p)
	}
}

// answer answers a process's waiting request if there is news.
func (b *Broker) answer(p *process) {
	if p.request == nil {
		return
	}
	a := wire.ClosuresAnswer{}
	for _, id := range p.resources {
		if b.released[id] {
			a.Released = append(a.Released, id)
		}
	}
	for id, c := range p.has {
		if c.told && !slices.Contains(p.ending, id) {
			a.Cancel = append(a.Cancel, id)
		}
	}
	slices.Sort(a.Cancel)
	for free := p.free; free > 0; free-- {
		i := slices.IndexFunc(b.queue, func(c *call) bool { return c.Task == "" || c.Task == p.task })
		if i < 0 {
			break
		}
		b.give(p, b.queue[i], &a)
		b.queue = slices.Delete(b.queue, i, i+1)
	}
	if len(a.Closures)+len(a.Cancel)+len(a.Released) > 0 {
		p.request <- a
		p.request = nil
	}
}

// give adds a closure to a process's answer.
func (b *Broker) give(p *process, c *call, a *wire.ClosuresAnswer) {
	c.process = p
	p.has[c.ID] = c
	one := c.Closure
	one.Task = ""
	a.Closures = append(a.Closures, one)
	for _, id := range c.Resources {
		r, ok := b.resources[id]
		if ok && !slices.Contains(p.resources, id) {
			p.resources = append(p.resources, id)
			a.Resources = append(a.Resources, r)
		}
	}
	if c.batch != nil {
		c.batch.progress = time.Now()
	}
}
