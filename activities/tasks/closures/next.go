package closures

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// Next answers a process of a task; see [taskapi.Broker].
func (b *Broker) Next(ctx context.Context, task string, in wire.ClosuresRequest) (wire.ClosuresAnswer, error) {
	b.mu.Lock()
	p, answer, err := b.receive(ctx, task, in)
	if err != nil || answer != nil {
		left := err == nil && in.Slots <= 0 && !b.has(task)
		b.mu.Unlock()
		if left && b.Left != nil {
			b.Left(task)
		}
		if err != nil {
			return wire.ClosuresAnswer{}, err
		}
		return *answer, nil
	}
	w := p.request
	b.mu.Unlock()

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
	if p.request == w {
		b.answer(p, wire.ClosuresAnswer{Cancel: p.cancellations()})
	}
	return <-w.answer, nil
}

// receive processes a request. It returns the answer, or nil if the request must wait. b.mu
// must be held.
func (b *Broker) receive(ctx context.Context, task string, in wire.ClosuresRequest) (*process, *wire.ClosuresAnswer, error) {
	key := processKey{task, in.Process}
	switch {
	case b.isClosed():
		return nil, nil, taskapi.ErrClosuresAway
	case b.gone.contains(key):
		return nil, nil, taskapi.ErrProcessEnded
	}
	p := b.processes[key]
	isNew := p == nil
	if isNew {
		p = &process{
			processKey: key, news: in.Got,
			holds: map[uint64]*entry{}, built: map[uint64]bool{}, took: map[string]float64{},
		}
		b.processes[key] = p
		delete(b.endedIn, p.task)
		b.watch(p, taskapi.ProcessOf(ctx))
		if in.Seq > 1 && !b.settled {
			b.successor = true
		}
	}
	p.got, p.answered = max(p.got, in.Got), time.Now()
	b.speaks(p, in)
	for _, o := range in.Done {
		b.hasDone(p, isNew, o)
	}
	for _, id := range in.Returned {
		// If the process was given it again since, that is another call.
		if e := p.holds[id]; e != nil && e.news <= in.Got {
			b.putBack(e)
		}
	}
	stale := in.Seq < p.seq
	if stale {
		// A newer request has reported the state of the process.
		b.dispatch()
		return p, &wire.ClosuresAnswer{}, nil
	}
	p.seq = in.Seq
	b.answer(p, wire.ClosuresAnswer{})
	b.introduce(p, in.Slots, in.Functions)
	if p.unread != nil && in.Got >= p.news {
		for _, r := range p.unread.resources {
			p.built[r.ID] = true
		}
		p.unread = nil
	}
	if isNew {
		b.adopt(p, in)
		if in.Seq > 1 && len(b.released) > 0 {
			p.release(b.released) // an earlier broker may not have done so
		}
	}
	p.hasRead(in.Got)
	b.reconcile(p, in)
	b.heard(key)
	b.dispatch()
	if in.Slots <= 0 && len(p.holds) == 0 {
		b.forget(p)
		delete(b.endedIn, p.task)
		return p, &wire.ClosuresAnswer{}, nil
	}
	if p.slots > 0 && len(p.functions) == 0 {
		return p, &wire.ClosuresAnswer{Introduce: true}, nil
	}
	if p.unread != nil {
		answer := p.read()
		return p, &answer, nil
	}
	w := &waiting{free: in.Free, answer: make(chan wire.ClosuresAnswer, 1)}
	p.request = w
	b.waiting = append(b.waiting, p)
	if gave := b.give(p); gave || p.owed {
		b.answer(p, b.news(p))
	}
	if p.request == w && in.Wait <= 0 {
		b.answer(p, wire.ClosuresAnswer{})
	}
	if p.request != w {
		answer := <-w.answer
		return p, &answer, nil
	}
	return p, nil, nil
}

// answer answers the waiting request of a process, if there is one.
func (b *serving) answer(p *process, a wire.ClosuresAnswer) {
	if p.request == nil {
		return
	}
	p.request.answer <- a
	p.request, p.answered = nil, time.Now()
	i := slices.Index(b.waiting, p)
	b.waiting = slices.Delete(b.waiting, i, i+1)
}

// read returns the answer that the process may not have received.
func (p *process) read() wire.ClosuresAnswer {
	a := wire.ClosuresAnswer{News: p.news, Resources: p.unread.resources, Cancel: p.cancellations()}
	for _, r := range p.released {
		a.Released = append(a.Released, wire.ReleasedResources{First: r[0], Last: r[1]})
	}
	for i, e := range p.unread.closures {
		if e.process != p || e.call != p.unread.calls[i] {
			continue
		}
		c := e.closure
		a.Closures = append(a.Closures, wire.Call{
			Call: e.call,
			Closure: closure.Closure{
				ID: c.ID, Function: c.Function, Args: c.Args, Kwargs: c.Kwargs, Resources: c.Resources, Attempt: c.Attempt,
			},
		})
	}
	return a
}

// news returns an answer with its own number, with all closures that were given to the process
// and all cancellations.
func (b *serving) news(p *process) wire.ClosuresAnswer {
	if p.unread == nil {
		p.nextNews()
		p.unread = &unread{}
	}
	p.owed = false
	return p.read()
}

// cancellations returns all calls that the process holds and must end, even if an earlier
// answer had them.
func (p *process) cancellations() []uint64 {
	var list []uint64
	for id, e := range p.holds {
		if e.told {
			list = append(list, id)
		}
	}
	for id := range p.taken {
		list = append(list, id)
	}
	slices.Sort(list)
	return list
}

// hasDone handles an outcome.
func (b *Broker) hasDone(p *process, isNew bool, in wire.CallOutcome) {
	e := p.holds[in.ID]
	if e == nil && isNew {
		// It was called for an earlier broker.
		e = b.entries[in.ID]
		switch {
		case e == nil:
			e = b.brought(in.ID)
		case e.state == queued:
			b.queue.remove(e)
		case e.state == doomed:
		default:
			return // it has an outcome already, or another process calls it
		}
		p.take(e)
	}
	if e == nil || e.call != 0 && in.Call != 0 && e.call != in.Call {
		return // the outcome was received before
	}
	if in.Seconds <= 0 && e.batch > 0 {
		in.Seconds = time.Since(e.at).Seconds() / float64(e.batch)
	}
	p.learn(e.closure.Function, in.Seconds)
	b.suspects.remove(e.closure.ID)
	b.finish(e, judge(e, in))
}

// adopt takes over the closures that a process holds from an earlier broker.
func (b *Broker) adopt(p *process, in wire.ClosuresRequest) {
	for _, id := range in.Held {
		e := b.entries[id]
		switch {
		case e == nil:
			e = b.brought(id)
			e.since = time.Now()
			b.forgetLater()
		case e.state == queued:
			b.queue.remove(e)
		case e.state == doomed:
		default:
			continue
		}
		e.at, e.news = time.Now(), in.Got
		p.take(e)
		if e.told {
			b.tell(e, b.grace)
		}
	}
}

// brought adds a closure that a process has from an earlier broker and that no lease has
// named yet.
func (b *store) brought(id uint64) *entry {
	e := &entry{closure: closure.Closure{ID: id}}
	if b.cancelled.contains(id) {
		e.told = true
	}
	b.add(e)
	return e
}

// reconcile compares the closures that a process should hold with those that it reports.
func (b *Broker) reconcile(p *process, in wire.ClosuresRequest) {
	for _, id := range in.Begun {
		if e := p.holds[id]; e != nil {
			e.begun = true
		}
	}
	if len(p.holds) == 0 {
		return
	}
	has := make(map[uint64]bool, len(in.Held))
	for _, id := range in.Held {
		has[id] = true
	}
	for id, e := range p.holds {
		if e.news <= in.Got && !has[id] {
			b.Log.Warn("a process does not know a call that it was sent; another process will execute it",
				zap.String("task", p.task), zap.Uint64("closure", id))
			b.putBack(e)
		}
	}
}

// putBack queues a closure for another process. If the closure was cancelled, it ends.
func (b *store) putBack(e *entry) {
	p := e.process
	switch {
	case e.told:
		b.finish(e, cancelledOutcome(""))
	case !e.known:
		// The next lease that names it brings it again.
		delete(p.holds, e.closure.ID)
		b.drop(e)
	default:
		delete(p.holds, e.closure.ID)
		b.enqueue(e)
	}
}
