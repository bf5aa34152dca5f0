package closures

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// world is a host whose processes end, lose answers and get stuck at random, and whose broker
// is killed at random.
type world struct {
	t      testing.TB
	random *rand.Rand // guarded by mu

	mu     sync.Mutex
	broker *Broker
	// alive has the living processes by task. Closing the channel of a process ends it.
	alive map[string]*unreliable
	names int
	over  bool
	work  sync.WaitGroup
	// calls counts the calls that have ended with a value, by closure.
	calls map[uint64]int
}

func (w *world) chance(n int) bool { return w.below(n) == 0 }

func (w *world) below(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

// startBroker replaces the broker.
func (w *world) startBroker() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broker != nil {
		w.broker.Close()
	}
	w.broker = NewBroker(Config{
		Log: zap.NewNop(), Report: func(context.Context, []closure.ServingTask) error { return nil },
		Restart: func(task string) { w.restart(task) },
	})
}

func (w *world) current() *Broker {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broker
}

// restart ends the process of a task, tells the broker, and starts the next process.
func (w *world) restart(task string) {
	w.mu.Lock()
	old, b, over := w.alive[task], w.broker, w.over
	if over {
		w.mu.Unlock()
		return
	}
	w.names++
	next := &unreliable{w: w, task: task, name: fmt.Sprint("p", w.names), slots: 1 + w.random.IntN(3), dead: make(chan struct{}), given: map[uint64]wire.Call{}, began: map[uint64]time.Time{}, cancelled: map[uint64]bool{}}
	w.alive[task] = next
	w.work.Add(1)
	w.mu.Unlock()
	if old != nil {
		close(old.dead)
		b.ProcessEnded(task, "")
	}
	go next.serve()
}

// unreliable is a process that calls closures. A closure whose ID is a multiple of 50 takes
// long, and ends only with its process, even if it is cancelled; others take some milliseconds.
type unreliable struct {
	w          *world
	task, name string
	slots      int
	dead       chan struct{}
	seq, got   uint64
	order      []uint64
	given      map[uint64]wire.Call
	began      map[uint64]time.Time
	cancelled  map[uint64]bool
	done       []wire.CallOutcome
}

func (p *unreliable) serve() {
	defer p.w.work.Done()
	for {
		select {
		case <-p.dead:
			return
		default:
		}
		p.callSome()
		p.ask()
	}
}

func (p *unreliable) duration(id uint64) time.Duration {
	switch {
	case id%50 == 0:
		return time.Minute
	case id%7 == 0:
		return 150 * time.Millisecond
	}
	return time.Duration(id%5) * time.Millisecond
}

// callSome continues the calls that have begun, and reports the calls that have ended.
func (p *unreliable) callSome() {
	time.Sleep(time.Duration(p.w.below(5)) * time.Millisecond)
	running := 0
	for _, id := range append([]uint64(nil), p.order...) {
		if running == p.slots {
			break
		}
		began, ok := p.began[id]
		if !ok {
			began = time.Now()
			p.began[id] = began
		}
		stuck := id%50 == 0 && id%100 != 0
		switch {
		case p.cancelled[id] && !stuck:
			p.end(id, wire.CallOutcome{Kind: "cancelled"})
		case time.Since(began) < p.duration(id):
			running++
		case p.w.chance(10):
			p.end(id, wire.CallOutcome{Kind: "error", Error: &closure.Error{Kind: "ValueError", Message: fmt.Sprint(id)}})
		default:
			p.w.mu.Lock()
			p.w.calls[id]++
			p.w.mu.Unlock()
			p.end(id, value(id))
		}
	}
}

func (p *unreliable) end(id uint64, o wire.CallOutcome) {
	o.ID, o.Call, o.Seconds = id, p.given[id].Call, p.duration(id).Seconds()
	p.done = append(p.done, o)
	p.drop(id)
}

func (p *unreliable) drop(id uint64) {
	delete(p.given, id)
	delete(p.began, id)
	delete(p.cancelled, id)
	for i, one := range p.order {
		if one == id {
			p.order = append(p.order[:i], p.order[i+1:]...)
			return
		}
	}
}

// ask sends the state of the process until it gets an answer.
func (p *unreliable) ask() {
	p.seq++
	in := wire.ClosuresRequest{Process: p.name, Seq: p.seq, Got: p.got, Slots: p.slots, Functions: []string{"f"}, Done: p.done}
	oldest := time.Duration(0)
	for _, id := range p.order {
		if began, ok := p.began[id]; ok {
			in.Begun = append(in.Begun, id)
			oldest = max(oldest, time.Since(began))
		}
	}
	for _, id := range append([]uint64(nil), p.order...) {
		if _, begun := p.began[id]; !begun && oldest > 100*time.Millisecond {
			in.Returned = append(in.Returned, id)
			p.drop(id)
		}
	}
	in.Held = append(in.Held, p.order...)
	if in.Free = p.slots - len(p.order); in.Free > 0 {
		in.Wait = float64(p.w.below(3)) / 10
	} else {
		in.Free = 0
	}
	for {
		ctx, cancel := context.WithCancel(context.Background())
		stop := make(chan struct{})
		go func() {
			select {
			case <-p.dead:
				cancel()
			case <-stop:
			}
		}()
		a, err := p.w.current().Next(ctx, p.task, in)
		close(stop)
		cancel()
		switch {
		case errors.Is(err, taskapi.ErrProcessEnded):
			<-p.dead
			return
		case err != nil || p.w.chance(8): // or the answer is lost
			select {
			case <-p.dead:
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		p.done = nil
		for _, id := range a.Cancel {
			if _, ok := p.given[id]; ok {
				p.cancelled[id] = true
			}
		}
		if a.News > p.got {
			p.got = a.News
			for _, c := range a.Closures {
				p.given[c.ID] = c
				p.order = append(p.order, c.ID)
				if slices.Contains(a.Cancel, c.ID) {
					p.cancelled[c.ID] = true
				}
			}
		}
		return
	}
}

// trouble ends processes and brokers until stop is closed.
func (w *world) trouble(tasks int, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(1+w.below(400)) * time.Millisecond):
		}
		if w.chance(8) {
			w.startBroker()
			continue
		}
		w.restart(fmt.Sprint("worker-", w.below(tasks)))
	}
}

// simulate runs a queue with some closures until all of them have ended.
func simulate(t *testing.T, seed uint64) {
	const tasks, total = 3, 200
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 1)), alive: map[string]*unreliable{}, calls: map[uint64]int{}}
	w.startBroker()
	for i := range tasks {
		w.restart(fmt.Sprint("worker-", i))
	}
	stop := make(chan struct{})
	w.work.Go(func() { w.trouble(tasks, stop) })

	var mu sync.Mutex
	open := map[uint64]*closure.Closure{}
	leased := map[uint64]bool{}
	final := map[uint64]closure.Outcome{}
	for id := uint64(1); id <= total; id++ {
		c := newClosure(id)
		if id%13 == 0 {
			c.Task = "worker-1"
		}
		open[id] = &c
	}
	// pick takes closures that are in no lease.
	pick := func() (list []closure.Closure) {
		mu.Lock()
		defer mu.Unlock()
		for id, c := range open {
			if !leased[id] && len(list) < 40 {
				leased[id] = true
				list = append(list, *c)
			}
		}
		return list
	}
	settle := func(list []closure.Closure, r closure.LeaseResult) {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range list {
			delete(leased, c.ID)
		}
		told := map[uint64]bool{}
		for _, o := range r.Outcomes {
			assert.False(t, told[o.ID], "%d has two outcomes", o.ID)
			told[o.ID] = true
			if o.Kind == "" || o.Kind.Final() {
				_, before := final[o.ID]
				assert.False(t, before, "%d has ended twice", o.ID)
				final[o.ID] = o
				delete(open, o.ID)
				continue
			}
			open[o.ID].Attempt++
		}
		for _, id := range r.Rest {
			assert.False(t, told[id], "%d has an outcome and is left", id)
			told[id] = true
		}
		if len(r.Outcomes) > 0 {
			assert.Len(t, told, len(list), "the result names all")
		}
	}
	var queue sync.WaitGroup
	for range 4 {
		queue.Go(func() {
			for {
				mu.Lock()
				left := len(open)
				mu.Unlock()
				if left == 0 {
					return
				}
				list := pick()
				if len(list) == 0 {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+w.below(2000))*time.Millisecond)
				r, err := w.current().Lease(ctx, closure.Lease{Closures: list})
				cancel()
				if err != nil {
					r = closure.LeaseResult{}
					time.Sleep(time.Millisecond)
				}
				settle(list, r)
				if w.chance(4) {
					c := list[w.below(len(list))]
					w.current().Cancel(closure.CancelLease{Closures: []uint64{c.ID}, Grace: 200 * time.Millisecond})
				}
			}
		})
	}
	// Calls that take a minute are rarely undisturbed for that long.
	queue.Go(func() {
		time.Sleep(time.Minute)
		for {
			mu.Lock()
			var long []uint64
			for id := range open {
				if id%50 == 0 {
					long = append(long, id)
				}
			}
			left := len(open)
			mu.Unlock()
			if left == 0 {
				return
			}
			w.current().Cancel(closure.CancelLease{Closures: long, Grace: 50 * time.Millisecond})
			time.Sleep(time.Second)
		}
	})
	queue.Wait()
	close(stop)
	assert.Len(t, final, total)
	for id, o := range final {
		if o.Kind == "" {
			assert.Equal(t, fmt.Sprint(id), string(o.Value))
			assert.Positive(t, w.calls[id], "a process has called it")
		}
	}
	w.mu.Lock()
	w.over = true
	for _, p := range w.alive {
		close(p.dead)
	}
	w.mu.Unlock()
	b := w.current()
	for i := range tasks {
		b.ProcessEnded(fmt.Sprint("worker-", i), "")
	}
	time.Sleep(2 * keptFor)
	synctest.Wait()
	assertEmpty(t, &host{Broker: b})
	b.Close()
	w.work.Wait()
}

// Every closure gets an outcome in all circumstances, and no lease returns the same one twice.
func TestEveryClosureGetsAnOutcome(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 5
	}
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
		require.False(t, t.Failed(), "seed %d", seed)
	}
}

func FuzzEveryClosureGetsAnOutcome(f *testing.F) {
	f.Add(uint64(1 << 40))
	f.Fuzz(func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
	})
}

// After a million closures, nothing is left behind.
func TestMemoryIsFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("a million closures take some seconds")
	}
	b := NewBroker(Config{Log: zap.NewNop(), Report: func(context.Context, []closure.ServingTask) error { return nil }, Restart: func(string) {}})
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var serving sync.WaitGroup
	for i := range 2 {
		serving.Go(func() {
			in := wire.ClosuresRequest{Process: fmt.Sprint("p", i), Slots: 1, Functions: []string{"f"}, Free: 1, Wait: 20}
			for ctx.Err() == nil {
				in.Seq++
				a, err := b.Next(ctx, "worker-0", in)
				if !assert.NoError(t, err) {
					return
				}
				in.Done = in.Done[:0]
				in.Got = max(in.Got, a.News)
				for _, c := range a.Closures {
					in.Done = append(in.Done, wire.CallOutcome{ID: c.ID, Call: c.Call, Value: c.Args, Seconds: 1e-6})
				}
			}
		})
	}
	used := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const each, batch = 100_000, 500
	var after []uint64
	id := uint64(0)
	for range 10 {
		for ended := 0; ended < each; {
			var list []closure.Closure
			for range min(batch, each-ended) {
				id++
				c := newClosure(id)
				c.Args = []byte(`[1,"some argument"]`)
				c.Resources = []uint64{id}
				list = append(list, c)
			}
			for len(list) > 0 {
				r := must.Get(b.Lease(ctx, closure.Lease{Closures: list}))(t)
				ended += len(r.Outcomes)
				list = list[:0]
				for _, id := range r.Rest {
					list = append(list, closure.Closure{ID: id})
				}
			}
		}
		after = append(after, used())
	}
	cancel()
	serving.Wait()
	assert.Less(t, after[9], after[1]+1<<20, "%v", after)
	assertEmpty(t, &host{Broker: b})
}
