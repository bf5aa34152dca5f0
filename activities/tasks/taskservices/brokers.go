package taskservices

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
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

// Brokers are the brokers of the runs whose tasks on this host serve closures.
type Brokers struct {
	Config
	group *background.Group

	mu  sync.Mutex
	all map[runkey.Run]*Broker
}

// Broker holds the closures of one run.
type Broker struct {
	*closures.Broker
	// in is the input to start the queue with, if there is none yet.
	in closure.QueueInput
	// life tells this broker from earlier ones.
	life string
	seq  int64
	end  context.CancelFunc

	mu sync.Mutex
	// serving is valid once said is true.
	said    bool
	serving []closure.ServingTask
	changed chan struct{} // has an element while a report to the queue is due
}

var _ taskapi.Closures = (*Brokers)(nil)

func newBrokers(c Config, g *background.Group) *Brokers {
	return &Brokers{Config: c, group: g, all: map[runkey.Run]*Broker{}}
}

// Next implements [taskapi.Closures].
func (b *Brokers) Next(ctx context.Context, by runkey.Task, in taskapi.ClosuresRequest) (taskapi.ClosuresAnswer, error) {
	run, err := b.runOf(by)
	if err != nil {
		return taskapi.ClosuresAnswer{}, err
	}
	s := b.of(run)
	if s == nil {
		return taskapi.ClosuresAnswer{}, errReleased
	}
	if b.MayServe != nil && in.Slots > 0 {
		if err := b.MayServe(run.Key, by.Task); err != nil {
			return taskapi.ClosuresAnswer{}, err
		}
	}
	serving := run.Serving[by.Task]
	if in.Slots > 0 {
		if err := b.noteServing(run, by.Task, in.Process, s); err != nil {
			return taskapi.ClosuresAnswer{}, err
		}
	}
	answer, err := s.Next(ctx, by.Task, in)
	if err == nil && in.Slots <= 0 && serving != "" && !s.Has(by.Task) {
		b.noteLeft(run, by.Task)
	}
	return answer, err
}

// Serving returns the broker of a run, or nil if the run does not have this host, or has
// released it.
func (b *Brokers) Serving(run runkey.Run) *Broker {
	r, ok := b.here(run)
	if !ok {
		return nil
	}
	return b.of(r)
}

// Known returns the broker of a run, or nil if there is none.
func (b *Brokers) Known(run runkey.Run) *Broker {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[run]
}

// of returns the broker of a run, which it creates on first use. It returns nil if this host
// has already released the run.
func (b *Brokers) of(run Run) *Broker {
	key := run.Key
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.all[key]; s != nil {
		return s
	}
	if _, ok := b.here(key); !ok {
		return nil
	}
	ctx, end := context.WithCancel(b.group.Context())
	s := &Broker{in: b.queueInput(&run), life: rand.Text(), changed: make(chan struct{}, 1), end: end}
	s.Broker = closures.NewBroker(closures.Config{
		Log:     b.Log,
		Restart: func(task string) { b.restart(key, task) },
		Changed: s.changes,
		Ended: func(kind closure.OutcomeKind) {
			b.Metrics.Closures.WithLabelValues(string(cmp.Or(kind, closure.OutcomeValue))).Inc()
		},
		Earlier: run.servers(),
	})
	if ctx.Err() != nil {
		s.Close() // Close no longer knows of it
		return s
	}
	b.all[key] = s
	b.noteQueue(&run)
	b.group.Go(func(context.Context) { b.tell(ctx, s) })
	return s
}

// changes records the serving processes, and requests a report to the queue.
func (s *Broker) changes(serving []closure.ServingTask) {
	s.mu.Lock()
	s.said, s.serving = true, serving
	s.mu.Unlock()
	s.TellAgain()
}

// TellAgain repeats the report to the queue. After the queue has lost the closures that it gave
// to a host, it gives the host no more until the host reports again.
func (s *Broker) TellAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.said {
		return
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// TellAgain repeats the reports to all queues.
func (b *Brokers) TellAgain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.all {
		s.TellAgain()
	}
}

// tellPatience is the longest time that the server may take to answer.
const tellPatience = 10 * time.Second

// tellWarnsAfter is the number of successive failures after which a warning is logged. They
// take most of a second, which is more than a single lost answer.
const tellWarnsAfter = 5

// tell reports the serving processes to the queue until the run is released here. It repeats
// a report that the server did not accept.
func (b *Brokers) tell(ctx context.Context, s *Broker) {
	for {
		select {
		case <-s.changed:
		case <-ctx.Done():
			return
		}
		tries := 0
		for again := askAgain; ; {
			s.mu.Lock()
			s.seq++
			m := closure.ServingMessage{
				Host: b.Host, Queue: b.Queue,
				Seq: s.seq, Broker: s.life, Serving: s.serving,
			}
			s.mu.Unlock()
			telling, cancel := context.WithTimeout(ctx, tellPatience)
			err := b.Queues.Tell(telling, s.in, m)
			cancel()
			if err == nil || errors.Is(err, ErrQueueClosed) {
				break
			}
			level := zap.DebugLevel
			if tries++; tries == tellWarnsAfter {
				level = zap.WarnLevel
			}
			b.Log.Log(level, "the call queue could not be notified which tasks serve; retrying", zap.String("run", s.in.Run.WorkflowID), zap.Error(err))
			if again.Sleep(ctx) != nil {
				return
			}
		}
	}
}

// end ends the service of a run, without telling its queue.
func (b *Brokers) end(key runkey.Run) {
	b.mu.Lock()
	s := b.all[key]
	delete(b.all, key)
	b.mu.Unlock()
	if s != nil {
		s.end()
		s.Close()
	}
}

// close ends the service of all runs.
func (b *Brokers) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.all {
		s.end()
		s.Close()
	}
}

// restartPatience is the longest time that the supervisor may take to accept a restart.
const restartPatience = time.Minute

// restart restarts a process that does not end a call.
func (b *Brokers) restart(key runkey.Run, task string) {
	run, ok := b.here(key)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(b.group.Context(), restartPatience)
	defer cancel()
	if err := b.Config.Restart(ctx, run.Key, task); err != nil {
		b.Log.Warn("a process that ignores a cancellation could not be restarted", zap.String("task", task), zap.Error(err))
	}
}

// processEnded requeues the closures of a process that has ended. It returns the call in which
// the process ended, if there is one, and the life of its broker. Both are empty if no broker
// here had given it closures.
func (b *Brokers) processEnded(run Run, task string) (call, life string) {
	if s := b.Known(run.Key); s != nil {
		return s.ProcessEnded(task, ""), s.life
	}
	return "", ""
}

// queueInput returns the input of a run's queue of closures.
func (c *Config) queueInput(run *Run) closure.QueueInput {
	s := run.Spec
	if s == nil {
		s = &spec.RunSpec{}
	}
	in, err := closure.NewQueueInput(s, run.ofQueue(), os.Getenv)
	if err != nil {
		c.Log.Warn("a variable of this host worker is ignored", zap.String("run", run.Key.WorkflowID), zap.Error(err))
	}
	return in
}

// noteQueue notes that the run has a queue of closures, which is ended with the run.
func (c *Config) noteQueue(run *Run) {
	if run.Served {
		return
	}
	if _, err := c.Plans.Note(run.Key, func(n *Notes) { n.Served = true }); err != nil {
		c.Log.Warn("the call queue of a run could not be recorded; it may stay open after the run", zap.Error(err))
	}
}
