package task

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/internal/wire"
	"github.com/clusterrun/clusterrun/workflows/closure"
)

const (
	// outcomesWait is how long outcomes wait for others while calls go on, and
	// slotWaits how long a slot that has nothing to do waits for the other slots, which
	// may be as quick.
	outcomesWait = 20 * time.Millisecond
	slotWaits    = 500 * time.Microsecond
	// handBackAfter is how long closures wait behind calls before they are for others.
	handBackAfter = 100 * time.Millisecond
	// leavePatience bounds the farewell of a process that serves no more.
	leavePatience = 2 * time.Second
)

// ServeOption changes [Task.Serve].
type ServeOption func(*server)

// Slots sets how many functions are called at the same time. Default 1.
func Slots(n int) ServeOption { return func(s *server) { s.slots = n } }

// Serve calls the functions that coordinators schedule, until ctx ends. Their context
// ends when a call is cancelled, with [ErrCallCancelled] as its cause, when it runs
// out of time, with [ErrCallTimeout], and with ctx. A function that does not return
// then costs its process: the host has the task restarted. A program that it has started
// ends with the call only if that was by [os/exec.CommandContext].
//
// What a function has built as a per-worker resource is kept until its coordinator needs
// it no more and no call has it. Then an [io.Closer] is closed.
//
// When ctx ends Serve hands back what it has not called, waits for the functions that
// are being called, and returns the cause. What these return counts, unless it is an
// error: then they are called again elsewhere.
//
// When the tasks of the run are to stop together Serve does the same without ending the
// context of the functions, which may look at [Task.ShouldStop], and returns nil.
func (t *Task) Serve(ctx context.Context, functions *Functions, options ...ServeOption) error {
	s := &server{
		task: t, functions: functions, name: rand.Text(), slots: 1,
		calls: map[uint64]*call{}, unanswered: map[uint64]int{},
		poke: make(chan struct{}, 1), failed: make(chan error, 1),
	}
	for _, o := range options {
		o(s)
	}
	switch {
	case s.slots < 1 || s.slots > wire.MaxSlots:
		return fmt.Errorf("slots is %d; want 1 to %d", s.slots, wire.MaxSlots)
	case len(functions.names()) == 0:
		return errors.New("no function is registered: there is nothing to serve")
	}
	switch stop, err := t.stagger(ctx); {
	case err != nil:
		return err
	case stop:
		return nil
	}
	s.ctx, s.stop = context.WithCancel(ctx)
	err := s.serve()
	s.leave()
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// errStop ends the service of a process when the tasks of the run stop together.
var errStop = errors.New("the tasks of the run stop together")

// server is a process that serves closures.
type server struct {
	task      *Task
	functions *Functions
	name      string
	slots     int
	ctx       context.Context
	stop      context.CancelFunc
	resources resources
	workers   sync.WaitGroup
	requests  sync.WaitGroup
	poke      chan struct{} // has an element when something has changed
	failed    chan error

	mu     sync.Mutex
	change sync.Cond // of queue and leaving, for the workers
	// calls are all closures that are here, and queue those that have not begun.
	calls map[uint64]*call
	queue []*call
	busy  int
	// progress is when a call was begun, or closures came.
	progress time.Time
	// done are outcomes that no request has, since the first of them, and returned
	// closures that are handed back.
	done     []wire.CallOutcome
	since    time.Time
	returned []uint64
	// unanswered counts the requests without an answer that have the outcome of a
	// closure, or hand it back.
	unanswered map[uint64]int
	seq, got   uint64
	// open are the requests without an answer, the oldest first.
	open []*exchange
	// introduced are the functions that the host knows.
	introduced []string
	// stopping reports whether the tasks of the run are to stop together, and no call begins any more.
	stopping bool
	leaving  bool
}

// exchange is a request on its way.
type exchange struct {
	request wire.ClosuresRequest
}

func (s *server) serve() error {
	s.change.L = &s.mu
	for range s.slots {
		s.workers.Go(s.work)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s.mu.Lock()
		x, wait := s.next(time.Now())
		s.mu.Unlock()
		if x != nil {
			s.requests.Go(func() {
				if err := s.send(s.ctx, x); err != nil {
					s.fail(err)
				}
			})
			continue
		}
		timer.Reset(wait)
		select {
		case <-s.poke:
		case <-timer.C:
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		case err := <-s.failed:
			return err
		}
	}
}

// long is a wait for nothing in particular.
const long = time.Hour

// next returns the request that is due, or how long none is.
func (s *server) next(now time.Time) (*exchange, time.Duration) {
	if s.stopping && len(s.calls)+len(s.done)+len(s.returned) == 0 {
		return nil, long // the host counts it as ended already, or the farewell tells it
	}
	free := 0
	if len(s.queue) == 0 && !s.stopping {
		free = s.slots - s.busy
	}
	asked := 0
	switch len(s.open) {
	case 0:
	case 1:
		asked = s.open[0].request.Free
	default:
		return nil, long // the older one is answered because of the newer one
	}
	due := func(since time.Time, after time.Duration) time.Duration { return after - now.Sub(since) }
	wait := long
	switch {
	case len(s.queue) > 0 && due(s.progress, handBackAfter) <= 0:
		s.handBack()
		wait = 0
	case len(s.queue) > 0:
		wait = due(s.progress, handBackAfter)
	}
	if len(s.returned) > 0 {
		wait = 0
	}
	if len(s.done) > 0 {
		switch {
		case free == s.slots:
			wait = 0
		case free > 0:
			wait = min(wait, due(s.since, slotWaits))
		default:
			wait = min(wait, due(s.since, outcomesWait))
		}
	}
	switch {
	case len(s.open) > 0 && free > asked:
		wait = min(wait, due(s.progress, slotWaits))
	case len(s.open) == 0 && free > 0 && free == s.slots:
		wait = 0
	case len(s.open) == 0 && free > 0:
		wait = min(wait, due(s.progress, slotWaits))
	case len(s.open) == 0:
		// Somebody may want to cancel what is being called.
		wait = min(wait, due(s.progress, outcomesWait))
	}
	if wait > 0 {
		return nil, wait
	}
	return s.compose(free), 0
}

// handBack gives up what has not begun.
func (s *server) handBack() {
	for _, c := range s.queue {
		s.returned = append(s.returned, c.ID)
		delete(s.calls, c.ID)
	}
	s.queue = s.queue[:0]
}

// compose returns how the process stands.
func (s *server) compose(free int) *exchange {
	s.seq++
	x := &exchange{request: wire.ClosuresRequest{
		Process: s.name, Seq: s.seq, Got: s.got, Slots: s.slots, Free: free, Wait: wire.MaxWait, Returned: s.returned,
	}}
	in := &x.request
	switch {
	case s.leaving:
		in.Slots, in.Wait = 0, 0
	case s.stopping:
		in.Slots = 0
	}
	if names := s.functions.names(); !slices.Equal(names, s.introduced) {
		in.Functions = names
	}
	size, n := 0, 0
	for n < len(s.done) && n < closure.MaxBatch && (n == 0 || size < closure.MaxBatchBytes) {
		size += len(s.done[n].Value) + 200
		if e := s.done[n].Error; e != nil {
			size += len(e.Message) + len(e.Traceback)
		}
		n++
	}
	in.Done, s.done = s.done[:n:n], s.done[n:]
	for _, o := range s.done {
		in.Held = append(in.Held, o.ID) // the next request has them
	}
	for id := range s.unanswered {
		if s.calls[id] == nil {
			in.Held = append(in.Held, id)
		}
	}
	for id, c := range s.calls {
		in.Held = append(in.Held, id)
		if !c.began.IsZero() {
			in.Begun = append(in.Begun, id)
		}
	}
	for _, o := range in.Done {
		s.unanswered[o.ID]++
	}
	for _, id := range in.Returned {
		s.unanswered[id]++
	}
	s.returned = nil
	s.open = append(s.open, x)
	return x
}

// send sends a request until it is answered, or ctx ends.
func (s *server) send(ctx context.Context, x *exchange) error {
	var answer wire.ClosuresAnswer
	body, err := json.Marshal(&x.request)
	for again := tries; err == nil; {
		answer = wire.ClosuresAnswer{}
		err = s.task.call(ctx, http.MethodPost, wire.PathClosures, body, &answer)
		var refused *APIError
		if err == nil || !errors.As(err, &refused) || refused.Code != wire.CodeClosuresAway {
			break
		}
		err = again.Sleep(ctx)
	}
	s.mu.Lock()
	s.answered(x, &answer, err)
	s.mu.Unlock()
	s.wake()
	return err
}

func (s *server) wake() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

func (s *server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// answered takes in the answer to a request, or that there is none.
func (s *server) answered(x *exchange, a *wire.ClosuresAnswer, err error) {
	s.open = slices.DeleteFunc(s.open, func(o *exchange) bool { return o == x })
	for _, o := range x.request.Done {
		s.forget(o.ID)
	}
	for _, id := range x.request.Returned {
		s.forget(id)
	}
	if err != nil {
		s.done = append(x.request.Done, s.done...)
		s.returned = append(x.request.Returned, s.returned...)
		return
	}
	if x.request.Functions != nil {
		s.introduced = x.request.Functions
	}
	if a.Introduce {
		s.introduced = nil
	}
	// Before what comes: a closure of this answer may use anew what was released earlier.
	s.resources.release(a.Released)
	if a.News > s.got {
		s.got = a.News
		s.resources.learn(a.Resources)
		for i := range a.Closures {
			s.receive(&a.Closures[i])
		}
		s.progress = time.Now()
		s.change.Broadcast()
	}
	for _, one := range a.Cancel {
		s.cancel(one)
	}
	if a.Stop && !s.stopping {
		s.stopping = true
		s.change.Broadcast()
		go func() {
			s.workers.Wait()
			s.fail(errStop)
		}()
	}
	if s.stopping || s.leaving {
		s.handBack()
	}
}

// receive takes in a closure that is to be called.
func (s *server) receive(in *wire.Call) {
	s.returned = slices.DeleteFunc(s.returned, func(id uint64) bool { return id == in.ID })
	if c := s.calls[in.ID]; c != nil {
		// A host that was started again may not know that it is here.
		c.Call.Call = in.Call
		return
	}
	c := &call{Call: *in}
	s.calls[c.ID] = c
	s.queue = append(s.queue, c)
}

func (s *server) forget(id uint64) {
	if s.unanswered[id]--; s.unanswered[id] <= 0 {
		delete(s.unanswered, id)
	}
}

// cancel ends a call, or has a closure not be called.
func (s *server) cancel(one wire.CallCancel) {
	c := s.calls[one.ID]
	if c == nil || c.told != nil {
		return
	}
	c.told = ErrCallCancelled
	if one.Timeout {
		c.told = ErrCallTimeout
	}
	if c.cancel != nil {
		c.cancel(c.told)
		return
	}
	s.queue = slices.DeleteFunc(s.queue, func(o *call) bool { return o == c })
	s.ended(c, outcomeOf(nil, c.told, c.told))
}

// ended keeps the outcome of a closure until a request has it.
func (s *server) ended(c *call, out wire.CallOutcome) {
	delete(s.calls, c.ID)
	out.ID, out.Call = c.ID, c.Call.Call
	if len(s.done) == 0 {
		s.since = time.Now()
	}
	s.done = append(s.done, out)
}

// work calls closures one after the other.
func (s *server) work() {
	for c := s.begin(); c != nil; c = s.begin() {
		s.oneCall(c)
	}
}

// begin waits for a closure to call. None: the process serves no more.
func (s *server) begin() *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.stopping && !s.leaving {
		s.change.Wait()
	}
	if s.stopping || s.leaving {
		return nil
	}
	c := s.queue[0]
	s.queue = s.queue[1:]
	c.began = time.Now()
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	s.progress = c.began
	s.busy++
	return c
}

var errEndedItsGoroutine = errors.New("the function has ended its goroutine instead of returning")

// oneCall calls a closure.
func (s *server) oneCall(c *call) {
	returned := false
	var out wire.CallOutcome
	defer func() {
		if !returned { // runtime.Goexit, and this goroutine ends, too
			out = outcomeOf(nil, errEndedItsGoroutine, nil)
			s.workers.Go(s.work)
		}
		s.mu.Lock()
		s.busy--
		if s.ctx.Err() != nil && out.Error != nil && c.told == nil {
			// It has ended because all does: that is no answer to who wanted it.
			delete(s.calls, c.ID)
			s.returned = append(s.returned, c.ID)
		} else {
			s.ended(c, out)
		}
		tell := len(s.queue) == 0 || len(s.done) == 1
		s.mu.Unlock()
		c.cancel(nil)
		if tell {
			s.wake()
		}
	}()
	out = s.run(c)
	returned = true
}

// leave says that the process serves no more, and what came of its last calls.
func (s *server) leave() {
	s.stop()
	s.mu.Lock()
	s.leaving = true
	s.handBack()
	s.change.Broadcast()
	s.mu.Unlock()
	s.requests.Wait()
	s.farewell()
	s.workers.Wait()
	if s.unsaid() {
		s.farewell()
	}
}

// unsaid reports whether there is something for the host that it has not heard.
func (s *server) unsaid() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.done) > 0 || len(s.returned) > 0
}

// farewell says how the process stands, for a short time.
func (s *server) farewell() {
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	for {
		s.mu.Lock()
		x := s.compose(0)
		s.mu.Unlock()
		if err := s.send(ctx, x); err != nil || !s.unsaid() {
			return
		}
	}
}
