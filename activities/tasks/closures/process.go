package closures

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

type processKey struct{ task, name string }

// process is a process that serves closures.
type process struct {
	processKey
	slots int
	// seq is the number of its newest request, and news the number of the last answer with
	// news.
	seq, news uint64
	// unread is the last answer with closures, until the process acknowledges it.
	unread *unread
	// owed reports whether cancellations must be sent to it.
	owed bool
	// has are the closures that it has, by ID.
	has map[uint64]*call
	// built are the resources whose definitions were sent to it, and released those that the next
	// answer tells it to drop.
	built    map[uint64]bool
	released []uint64
	// request is its waiting request.
	request *waiting
	// restarted is the time of the last request for its restart.
	restarted time.Time
	// watched is the pidfd by which the kernel reports its end.
	watched *os.File
}

// unread is the content of an answer that may not have arrived.
type unread struct {
	calls     []*call
	resources []closure.Resource
	released  []uint64
}

// waiting is a request that waits for its answer.
type waiting struct {
	free   int
	answer chan wire.ClosuresAnswer // has room for it
}

// serves reports whether the process takes closures.
func (p *process) serves() bool { return p.slots > 0 }

func (p *process) hasNews() bool { return p.unread != nil || p.owed || len(p.released) > 0 }

// Next answers a process of a task; see [taskapi.Broker].
func (b *Broker) Next(ctx context.Context, task string, in wire.ClosuresRequest) (wire.ClosuresAnswer, error) {
	b.mu.Lock()
	w, left, err := b.receive(ctx, processKey{task, in.Process}, in)
	b.mu.Unlock()
	if err != nil {
		return wire.ClosuresAnswer{}, err
	}
	if left && b.Left != nil {
		b.Left(task)
	}
	patience := time.NewTimer(time.Duration(in.Wait * float64(time.Second)))
	defer patience.Stop()
	select {
	case a := <-w.answer:
		return a, nil
	case <-patience.C:
	case <-ctx.Done():
	case <-b.ctx.Done():
		return wire.ClosuresAnswer{}, taskapi.ErrClosuresAway
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.processes[processKey{task, in.Process}]; p != nil && p.request == w {
		b.answer(p)
	}
	return <-w.answer, nil
}

// receive processes a request, which has the state of the process. left reports whether the last
// process of the task has left. b.mu must be held.
func (b *Broker) receive(ctx context.Context, key processKey, in wire.ClosuresRequest) (w *waiting, left bool, err error) {
	switch {
	case b.isClosed():
		return nil, false, taskapi.ErrClosuresAway
	case b.gone[key]:
		return nil, false, taskapi.ErrProcessEnded
	}
	w = &waiting{free: in.Free, answer: make(chan wire.ClosuresAnswer, 1)}
	p := b.processes[key]
	if p == nil {
		p = &process{processKey: key, news: in.Got, has: map[uint64]*call{}, built: map[uint64]bool{}}
		b.processes[key] = p
		delete(b.endedIn, p.task)
		b.watch(p, taskapi.ProcessOf(ctx))
		b.adopt(p, in)
	}
	for _, o := range in.Done {
		b.hasDone(p, o)
	}
	for _, id := range in.Returned {
		if c := p.has[id]; c != nil && !p.isUnread(c) {
			b.putBack(c)
		}
	}
	if in.Seq < p.seq {
		w.answer <- wire.ClosuresAnswer{} // a newer request has reported the state of the process
		return w, false, nil
	}
	p.seq = in.Seq
	if p.request != nil {
		b.answer(p)
	}
	if in.Got >= p.news {
		p.unread = nil
	}
	for _, c := range p.has {
		if !p.isUnread(c) && !slices.Contains(in.Held, c.ID) {
			b.Log.Warn("a process does not know a call that it was sent; it is called again", zap.String("task", p.task), zap.Uint64("closure", c.ID))
			b.putBack(c)
		}
	}
	if p.slots != in.Slots {
		p.slots = in.Slots
		b.serves()
	}
	if in.Slots <= 0 && len(p.has) == 0 {
		b.forget(p)
		delete(b.endedIn, p.task)
		w.answer <- wire.ClosuresAnswer{}
		return w, !b.hasTask(p.task), nil
	}
	p.request = w
	b.dispatch()
	if p.request == w && (p.hasNews() || in.Wait <= 0) {
		b.answer(p)
	}
	return w, false, nil
}

func (p *process) isUnread(c *call) bool {
	return p.unread != nil && slices.Contains(p.unread.calls, c)
}

// answer answers the waiting request of a process with everything that it may not know.
func (b *Broker) answer(p *process) {
	var a wire.ClosuresAnswer
	if p.unread == nil && len(p.released) > 0 {
		p.news++
		p.unread = &unread{released: p.released}
		p.released = nil
	}
	p.owed = false
	for id, c := range p.has {
		if c.told {
			a.Cancel = append(a.Cancel, id)
		}
	}
	slices.Sort(a.Cancel)
	if p.unread != nil {
		a.News, a.Resources = p.news, p.unread.resources
		for _, c := range p.unread.calls {
			if c.process == p {
				one := c.Closure
				one.Task = ""
				a.Closures = append(a.Closures, wire.Call{Call: c.number, Closure: one})
			}
		}
		for _, id := range p.unread.released {
			a.Released = append(a.Released, wire.ReleasedResources{First: id, Last: id})
		}
	}
	p.request.answer <- a
	p.request = nil
}

// adopt takes over the closures that a process has from an earlier broker.
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
		c.process, c.begun = p, time.Now()
		p.has[id] = c
	}
	b.change()
}

// hasDone handles an outcome.
func (b *Broker) hasDone(p *process, in wire.CallOutcome) {
	c := p.has[in.ID]
	if c != nil && (c.number == 0 || in.Call == 0 || c.number == in.Call) {
		b.finish(c, judge(c, in))
	}
}

// hasTask reports whether a process of a task serves here, or has closures.
func (b *Broker) hasTask(task string) bool {
	for key := range b.processes {
		if key.task == task {
			return true
		}
	}
	return false
}

// forget removes a process for good.
func (b *Broker) forget(p *process) {
	b.gone[p.processKey] = true
	p.unwatch()
	if p.request != nil {
		b.answer(p)
	}
	delete(b.processes, p.processKey)
	b.serves()
}

// serves handles a change of the serving processes.
func (b *Broker) serves() {
	b.change()
	b.changedTasks()
}

// ProcessEnded records that a process of a task has ended, by the name under which it serves;
// an empty name stands for all processes of the task. It must be called before the next
// process of the task starts. Its calls are lost.
//
// For all processes of a task it returns the call in which the last serving one ended, such
// as "closure 17 of train"; it is empty if that process was in none.
func (b *Broker) ProcessEnded(task, name string) (called string) {
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
	if name == "" {
		called = b.endedIn[task]
		delete(b.endedIn, task)
	}
	return called
}

func (b *Broker) hasEnded(p *process) {
	p.slots = 0
	b.forget(p)
	for _, c := range p.has {
		b.endedIn[p.task] = c.String()
		if c.told {
			b.putBack(c)
			continue
		}
		b.finish(c, closure.Outcome{Kind: closure.OutcomeLost, Started: true, Error: &closure.Error{
			Kind: closure.ErrLost, Message: p.task + " has ended during the call",
		}})
	}
}

func (c *call) String() string {
	if c.Function == "" {
		return fmt.Sprintf("closure %d", c.ID)
	}
	return fmt.Sprintf("closure %d of %s", c.ID, c.Function)
}
