package activities

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/closures"
	"github.com/clusterrun/clusterrun/activities/taskapi"
	"github.com/clusterrun/clusterrun/activities/taskservices"
	"github.com/clusterrun/clusterrun/workflows/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// brokers are those of the runs whose tasks here serve closures.
type brokers struct {
	host *Host

	mu  sync.Mutex
	all map[servedKey]*brokered
}

// servedKey names a run by its first execution, which is that of its queue.
type servedKey struct{ namespace, workflowID, execution string }

// brokered is one run whose tasks serve.
type brokered struct {
	*closures.Broker
	// in is for the queue, if there is none yet. It has the run with the first execution.
	in closure.QueueInput
	// life tells this broker from the one before.
	life string
	seq  int64

	mu sync.Mutex
	// serving is there once the broker has said so.
	said    bool
	serving []closure.ServingTask
	changed chan struct{} // has an element when the queue has to be told
	ended   chan struct{}
}

var _ taskapi.Closures = (*brokers)(nil)

// Next implements [taskapi.Closures].
func (b *brokers) Next(ctx context.Context, by taskapi.ID, in taskapi.ClosuresRequest) (taskapi.ClosuresAnswer, error) {
	p, err := b.host.planOf(by)
	if err != nil {
		return taskapi.ClosuresAnswer{}, err
	}
	s := b.of(p)
	if s == nil {
		return taskapi.ClosuresAnswer{}, errReleased
	}
	if in.Slots > 0 && p.Serving[by.Task] != s.life {
		b.host.noteServing(p, by.Task, s.life)
	}
	answer, err := s.Next(ctx, by.Task, in)
	if err == nil && in.Slots <= 0 && p.Serving[by.Task] != "" && !s.Has(by.Task) {
		b.host.noteServing(p, by.Task, "")
	}
	return answer, err
}

// of is the broker of a run, which is made when it is first asked for; nil where this
// host has released the run since the plan was read.
func (b *brokers) of(p *plan) *brokered {
	key := servedKeyOf(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.all[key]; s != nil {
		return s
	}
	if b.host.plans.served(key) == nil {
		return nil
	}
	s := &brokered{
		in: b.host.queueInput(p), life: rand.Text(), changed: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	s.Broker = closures.NewBroker(closures.Config{
		Log:     b.host.Log,
		Restart: func(task string) { b.host.restartServing(key, task) },
		Changed: s.changes,
	})
	if b.all == nil {
		b.all = map[servedKey]*brokered{}
	}
	b.all[key] = s
	b.host.noteQueue(p)
	go b.tell(s)
	return s
}

// served is the broker of a run that has this host; nil where it has not (any more).
func (b *brokers) served(key servedKey) *brokered {
	p := b.host.plans.served(key)
	if p == nil {
		return nil
	}
	return b.of(p)
}

// known is the broker of a run if there is one.
func (b *brokers) known(key servedKey) *brokered {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[key]
}

// changes notes who serves now, for the queue.
func (s *brokered) changes(serving []closure.ServingTask) {
	s.mu.Lock()
	s.said, s.serving = true, serving
	s.mu.Unlock()
	s.again()
}

// again has the queue told once more who serves: it gives nothing to a host that it has
// not heard of since it lost what it gave it.
func (s *brokered) again() {
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

// again has all queues told.
func (b *brokers) again() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.all {
		s.again()
	}
}

// tellPatience is how long the server may take to answer.
const tellPatience = 10 * time.Second

// tellWarnsAfter is after how many failures in a row, which take most of a second, that is
// more than an answer that got lost.
const tellWarnsAfter = 5

// tell tells the queue who serves, until the run is released here. What the server
// did not take is told again.
func (b *brokers) tell(s *brokered) {
	h := b.host
	for {
		select {
		case <-s.changed:
		case <-s.ended:
			return
		}
		tries := 0
		for again := askAgain; ; {
			s.mu.Lock()
			s.seq++
			m := closure.ServingMessage{
				Host: h.Name, Queue: h.Queue,
				Seq: s.seq, Broker: s.life, Serving: s.serving,
			}
			s.mu.Unlock()
			ctx, cancel := context.WithTimeout(context.Background(), tellPatience)
			err := h.Queues.Tell(ctx, s.in, m)
			cancel()
			if err == nil || errors.Is(err, taskservices.ErrQueueClosed) {
				break
			}
			level := zap.DebugLevel
			if tries++; tries == tellWarnsAfter {
				level = zap.WarnLevel
			}
			h.Log.Log(level, "the queue of closures was not told who serves; telling it again", zap.String("run", s.in.Run.WorkflowID), zap.Error(err))
			select {
			case <-s.ended:
				return
			case <-time.After(again.Next()):
			}
		}
	}
}

// end ends the service of a run, without a word to its queue.
func (b *brokers) end(key servedKey) {
	b.mu.Lock()
	s := b.all[key]
	delete(b.all, key)
	b.mu.Unlock()
	if s != nil {
		close(s.ended)
		s.Close()
	}
}

// endAbandoned ends the service of a run that nobody will release any more, and its
// queue, unless the run goes on elsewhere: a run that continues as new leaves closed
// executions behind. Where that cannot be done now, the queue's own check does it later.
func (b *brokers) endAbandoned(ctx context.Context, p *plan) {
	key := servedKeyOf(p)
	if b.host.Queues == nil || b.host.plans.served(key) != nil {
		return
	}
	b.end(key)
	b.host.coordinating.end(key)
	over, err := b.host.Queues.Over(ctx, p.queueRun())
	if err == nil && over != "" {
		err = b.host.Queues.End(ctx, p.queueRun(), over)
	}
	if err != nil {
		b.host.Log.Debug("the queue of closures of an abandoned run was not ended; it finds out by itself", zap.String("run", p.Run.WorkflowID), zap.Error(err))
	}
}

// processEnded says so to whoever had given it closures. It returns the call in the
// middle of which the process ended, if there is one, and who says so; empty: nobody had
// given it any.
func (b *brokers) processEnded(p *plan, task string) (call, life string) {
	if s := b.known(servedKeyOf(p)); s != nil {
		return s.ProcessEnded(task, ""), s.life
	}
	return "", ""
}

func servedKeyOf(p *plan) servedKey {
	return servedKey{p.Run.Namespace, p.Run.WorkflowID, p.Run.RunID}
}

// queueRun names the run as its queue of closures does.
func (p *plan) queueRun() spec.BarrierRun {
	return spec.BarrierRun{WorkflowID: p.Run.WorkflowID, RunID: p.Run.RunID}
}

// queueInput is the input of a run's queue of closures.
func (h *Host) queueInput(p *plan) closure.QueueInput {
	s := p.Spec
	if s == nil {
		s = &spec.RunSpec{}
	}
	in, err := closure.NewQueueInput(s, p.queueRun(), os.Getenv)
	if err != nil {
		h.Log.Warn("a variable of this host worker is ignored", zap.String("run", p.Run.WorkflowID), zap.Error(err))
	}
	return in
}

// noteQueue keeps that the run has a queue of closures, so that it is ended with it.
func (h *Host) noteQueue(p *plan) {
	if p.Served {
		return
	}
	_, err := h.plans.update(p.Run, func(p *plan) (*plan, error) {
		if p == nil {
			return nil, errNoPlan
		}
		p.Served = true
		return p, nil
	})
	if err != nil {
		h.Log.Warn("that the run has a queue of closures is not noted; it may stay open after the run", zap.Error(err))
	}
}

// noteServing keeps that a process of a task serves, before it is given anything, and that
// it has left. A process that exits with 0 while no host worker is there must not read as
// completed: nobody is left who knows what it was calling.
func (h *Host) noteServing(p *plan, task, life string) {
	_, err := h.plans.update(p.Run, func(p *plan) (*plan, error) {
		if p == nil {
			return nil, errNoPlan
		}
		p.serves(task, life)
		return p, nil
	})
	if err != nil {
		h.Log.Warn("that a task serves closures is not noted; should it exit with 0 while this host worker is down, it counts as completed", zap.Error(err))
	}
}

// serves notes that a task serves, and whom it has asked; nobody: it serves no more.
func (p *plan) serves(task, life string) {
	p.Serving = maps.Clone(p.Serving)
	if life == "" {
		delete(p.Serving, task)
		return
	}
	if p.Serving == nil {
		p.Serving = map[string]string{}
	}
	p.Serving[task] = life
}

// noteCoordinator keeps that a task schedules closures: at its end what it has created for
// them is released.
func (h *Host) noteCoordinator(p *plan, task string) {
	if slices.Contains(p.Coordinators, task) {
		return
	}
	_, err := h.plans.update(p.Run, func(p *plan) (*plan, error) {
		switch {
		case p == nil:
			return nil, errNoPlan
		case !slices.Contains(p.Coordinators, task):
			p.Coordinators = append(slices.Clone(p.Coordinators), task)
		}
		return p, nil
	})
	if err != nil {
		h.Log.Warn("that a task schedules closures is not noted; what it creates for them may stay until the run ends", zap.Error(err))
	}
}
