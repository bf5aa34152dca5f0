package taskservices

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/background"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/closures"
	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Brokers holds one broker for each run with tasks on this host that serve closures.
type Brokers struct {
	Config
	group *background.Group

	mu  sync.Mutex
	all map[runkey.Run]*closures.Broker
	// stops stops each run's polling for batches.
	stops map[runkey.Run]func()
}

func newBrokers(c Config, g *background.Group) *Brokers {
	return &Brokers{Config: c, group: g, all: map[runkey.Run]*closures.Broker{}, stops: map[runkey.Run]func(){}}
}

// ForProcess returns the broker for a task's process with the given number of slots. See
// [taskapi.Config].
func (b *Brokers) ForProcess(by runkey.Task, slots int) (taskapi.Broker, error) {
	run, err := b.runOf(by)
	if err != nil {
		return nil, err
	}
	s := b.of(run)
	if s == nil {
		return nil, errReleased
	}
	if slots <= 0 {
		return s, nil
	}
	if b.MayServe != nil {
		if err := b.MayServe(run.Key, by.Task); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Serving returns a run's broker, or nil if the run does not use this host or has released it.
func (b *Brokers) Serving(run runkey.Run) *closures.Broker {
	r, ok := b.here(run)
	if !ok {
		return nil
	}
	return b.of(r)
}

// IsIdle reports whether a task waits for calls to serve.
func (b *Brokers) IsIdle(k runkey.Task) bool {
	b.mu.Lock()
	s := b.all[k.Run]
	b.mu.Unlock()
	return s != nil && s.IsIdle(k.Task)
}

// of returns a run's broker, creating it on first use. It returns nil if the run has already
// released this host.
func (b *Brokers) of(run Run) *closures.Broker {
	s := b.open(run)
	if s != nil {
		b.noteQueue(&run) // unlocked, since every process exit needs the lock
	}
	return s
}

func (b *Brokers) open(run Run) *closures.Broker {
	key := run.Key
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.all[key]; s != nil {
		return s
	}
	if _, ok := b.here(key); !ok {
		return nil
	}
	in, seq := b.queueInput(&run), time.Now().UnixNano() // larger than an earlier host worker's
	s := closures.NewBroker(closures.Config{
		Log: b.Log.With(zap.String("run", key.WorkflowID)), Queue: b.Queue,
		Restart: func(task string) error { return b.restart(key, task) },
		Report: func(ctx context.Context, serving []closure.ServingTask) error {
			ctx, cancel := context.WithTimeout(ctx, tellPatience)
			defer cancel()
			q, err := b.Queues(in.Run)
			if err != nil {
				return err
			}
			seq++
			return q.Tell(ctx, in, closure.ServingMessage{Host: b.Host, Queue: b.Queue, Seq: seq, Serving: serving})
		},
		Ended: func(kind closure.OutcomeKind) {
			b.Metrics.Closures.WithLabelValues(string(cmp.Or(kind, closure.OutcomeValue))).Inc()
		},
	})
	if b.group.Context().Err() != nil {
		s.Close() // close can no longer find it
		return s
	}
	b.all[key] = s
	if b.Poll != nil {
		b.stops[key] = b.Poll(in.Run, s)
	}
	return s
}

// tellPatience is the maximum time the server may take to answer.
const tellPatience = 10 * time.Second

// end stops serving a run, without notifying its queue.
func (b *Brokers) end(key runkey.Run) {
	b.mu.Lock()
	s, stop := b.all[key], b.stops[key]
	delete(b.all, key)
	delete(b.stops, key)
	b.mu.Unlock()
	if s != nil {
		s.Close()
	}
	if stop != nil {
		stop()
	}
}

// StopPolling stops polling for batches. Batches already on this host return what they can while
// their brokers are open.
func (b *Brokers) StopPolling() {
	b.mu.Lock()
	stops := slices.Collect(maps.Values(b.stops))
	clear(b.stops)
	b.mu.Unlock()
	var all sync.WaitGroup
	for _, stop := range stops {
		all.Go(stop)
	}
	all.Wait()
}

// close stops serving all runs.
func (b *Brokers) close() {
	b.StopPolling()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.all {
		s.Close()
	}
}

// restartPatience is the maximum time the supervisor may take to accept a restart.
const restartPatience = time.Minute

// restart restarts a process that is stuck in a call.
func (b *Brokers) restart(key runkey.Run, task string) error {
	run, ok := b.here(key)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(b.group.Context(), restartPatience)
	defer cancel()
	err := b.Config.Restart(ctx, run.Key, task)
	if err != nil {
		b.Log.Warn("could not restart a process that ignored a cancellation", zap.String("task", task), zap.Error(err))
	}
	return err
}

// ProcessEnded requeues the closures of a task's process that exited.
func (b *Brokers) ProcessEnded(k runkey.Task) {
	b.mu.Lock()
	s := b.all[k.Run]
	b.mu.Unlock()
	if s != nil {
		s.ProcessEnded(k.Task, "")
	}
}

// queueInput returns the input of a run's closure queue.
func (c *Config) queueInput(run *Run) closure.QueueInput {
	s := run.Spec
	if s == nil {
		s = &spec.RunSpec{}
	}
	in, err := closure.NewQueueInput(s, run.ofQueue(), c.Getenv)
	if err != nil {
		c.Log.Warn("ignoring a variable of this host worker", zap.String("run", run.Key.WorkflowID), zap.Error(err))
	}
	return in
}

// noteQueue records that the run has a closure queue, which is closed with the run.
func (c *Config) noteQueue(run *Run) {
	if run.Served {
		return
	}
	if _, err := c.Plans.Note(run.Key, func(n *Notes) { n.Served = true }); err != nil {
		c.Log.Warn("could not record a run's call queue; it may stay open after the run", zap.Error(err))
	}
}
