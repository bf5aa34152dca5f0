package closures

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

type processKey struct{ task, name string }

// process is a process that serves closures. Its state is from its newest request, numbered seq.
type process struct {
	processKey
	seq         uint64
	slots, free int
	// has holds its closures by ID, and ending those that it knows to be cancelled.
	has    map[uint64]*call
	ending []uint64
	// resources are the resources known to the process.
	resources []uint64
	// request is the buffered channel of the waiting request; nil if none waits.
	request chan wire.ClosuresAnswer
	// restarted reports whether a restart was requested.
	restarted bool
	// watched is the pidfd that reports its exit.
	watched *os.File
}

// serves reports whether the process accepts closures.
func (p *process) serves() bool { return p.slots > 0 }

// Next answers a task's process; see [taskapi.Broker].
func (b *Broker) Next(ctx context.Context, task string, in wire.ClosuresRequest) (wire.ClosuresAnswer, error) {
	b.mu.Lock()
	answer, err := b.receive(ctx, processKey{task, in.Process}, in)
	b.mu.Unlock()
	if err != nil {
		return wire.ClosuresAnswer{}, err
	}
	patience := time.NewTimer(time.Duration(in.Wait * float64(time.Second)))
	defer patience.Stop()
	select {
	case a := <-answer:
		return a, nil
	case <-patience.C:
	case <-ctx.Done():
	case <-b.ctx.Done():
		return wire.ClosuresAnswer{}, taskapi.ErrClosuresAway
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.processes[processKey{task, in.Process}]; p != nil && p.request == answer {
		p.unask()
	}
	return <-answer, nil
}

// unask answers a process's waiting request with an empty answer.
func (p *process) unask() {
	if p.request != nil {
		p.request <- wire.ClosuresAnswer{}
		p.request = nil
	}
}

// receive handles a request, which contains the process's state. b.mu must be held.
func (b *Broker) receive(ctx context.Context, key processKey, in wire.ClosuresRequest) (answer chan wire.ClosuresAnswer, err error) {
	switch {
	case b.isClosed():
		return nil, taskapi.ErrClosuresAway
	case b.gone[key]:
		return nil, taskapi.ErrProcessEnded
	}
	p := b.processes[key]
	if p == nil {
		p = &process{processKey: key, has: map[uint64]*call{}}
		b.processes[key] = p
		b.watch(p, taskapi.ProcessOf(ctx))
		b.adopt(p, in)
	}
	answer = make(chan wire.ClosuresAnswer, 1)
	if in.Seq < p.seq {
		answer <- wire.ClosuresAnswer{}
		return answer, nil
	}
	p.unask() // the process no longer waits for it
	for _, o := range in.Done {
		if c := p.has[o.ID]; c != nil {
			b.finish(c, judge(c, o))
		}
	}
	for _, c := range p.has {
		if !slices.Contains(in.Held, c.ID) {
			b.putBack(c)
		}
	}
	if p.slots != in.Slots {
		p.slots = in.Slots
		b.serves()
	}
	if in.Slots <= 0 && len(p.has) == 0 {
		b.forget(p)
		answer <- wire.ClosuresAnswer{}
		return answer, nil
	}
	p.seq, p.free, p.ending, p.resources, p.request = in.Seq, in.Free, in.Ending, in.Resources, answer
	b.dispatch()
	return answer, nil
}

// adopt takes over a process's closures from an earlier broker.
func (b *Broker) adopt(p *process, in wire.ClosuresRequest) {
	held := in.Held
	for _, o := range in.Done {
		held = append(held, o.ID)
	}
	for _, id := range held {
		c := b.calls[id]
		switch {
		case c == nil:
			c = &call{Closure: closure.Closure{ID: id}}
			b.calls[id] = c
		case c.process != nil || c.outcome != nil:
			continue
		}
		b.queue = slices.DeleteFunc(b.queue, func(o *call) bool { return o == c })
		c.process = p
		p.has[id] = c
	}
	b.change()
}

// IsIdle reports whether the task serves and all of its serving processes wait for a call.
func (b *Broker) IsIdle(task string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	idle := false
	for key, p := range b.processes {
		if key.task != task || !p.serves() {
			continue
		}
		if len(p.has) > 0 {
			return false
		}
		idle = true
	}
	return idle
}

// forget removes a process for good.
func (b *Broker) forget(p *process) {
	b.gone[p.processKey] = true
	p.unwatch()
	p.unask()
	delete(b.processes, p.processKey)
	b.serves()
}

// serves handles a change in the serving processes.
func (b *Broker) serves() {
	b.change()
	b.changedTasks()
}

// ProcessEnded records that a task's process, named as it serves, has exited. An empty name stands
// for all processes of the task. It must be called before the task's next process starts. The
// process's calls are lost.
func (b *Broker) ProcessEnded(task, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if name != "" {
		b.gone[processKey{task, name}] = true
	}
	for key, p := range b.processes {
		if key.task == task && (name == "" || key.name == name) {
			b.hasEnded(p)
		}
	}
	b.dispatch()
}

func (b *Broker) hasEnded(p *process) {
	p.slots = 0
	b.forget(p)
	for _, c := range p.has {
		if c.told {
			b.putBack(c)
			continue
		}
		b.finish(c, closure.Outcome{Kind: closure.OutcomeLost, Started: true, Error: &closure.Error{
			Kind: closure.ErrLost, Message: p.task + " exited during the call",
		}})
	}
}
