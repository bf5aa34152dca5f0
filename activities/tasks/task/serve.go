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

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

const (
	// outcomesWait is the time that outcomes wait for others while calls continue, and
	// slotWaits the time that an idle slot waits for the other slots, which may be as fast.
	outcomesWait = 20 * time.Millisecond
	slotWaits    = 500 * time.Microsecond
	// leavePatience bounds the farewell of a process that no longer serves.
	leavePatience = 2 * time.Second
)

// ServeOption configures [Task.Serve].
type ServeOption func(*server)

// Slots sets the number of functions that are called at the same time. The default is 1.
func Slots(n int) ServeOption { return func(s *server) { s.slots = n } }

// Serve calls the functions that coordinators schedule, until ctx ends. The context of a
// function ends when the call is cancelled, with [ErrCallCancelled] as its cause, and with ctx.
// If the function then does not return, the host restarts the task and its process is lost. A
// program that the function has started ends with the call only if it was started by
// [os/exec.CommandContext].
//
// The value of a per-worker resource is kept until its coordinator no longer needs it and no
// call uses it. Then it is closed if it is an [io.Closer].
//
// When ctx ends, Serve hands back the closures that it has not called, waits for the
// functions that are being called, and returns the cause. Their results count, except for
// errors: these functions are called again elsewhere.
//
// When a stop of all tasks of the run is requested, Serve does the same, but without ending the
// context of the functions, which may check [Task.ShouldStop], and returns nil.
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
		return errors.New("no function is registered, so nothing can be served")
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
	poke      chan struct{} // has an element after a change
	failed    chan error

	mu     sync.Mutex
	change sync.Cond // signals workers a change of queue or leaving
	// calls are all closures of this process, and queue those that have not begun.
	calls map[uint64]*call
	queue []*call
	busy  int
	// progress is the time at which the last call began, or closures last arrived.
	progress time.Time
	// done are outcomes that are not in any request yet, since is the time of the first of
	// them, and returned are closures that are handed back.
	done     []wire.CallOutcome
	since    time.Time
	returned []uint64
	// unanswered counts the unanswered requests that have the outcome of a closure, or hand
	// it back.
	unanswered map[uint64]int
	seq, got   uint64
	// open are the unanswered requests, the oldest first.
	open []*exchange
	// stopping reports whether a stop of all tasks of the run is requested. Then no more calls
	// begin.
	stopping bool
	leaving  bool
}

// exchange is a request in flight.
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

// long is the wait when nothing is due.
const long = time.Hour

// next returns the request that is due or, if none is, the time to wait.
func (s *server) next(now time.Time) (*exchange, time.Duration) {
	if s.stopping && len(s.calls)+len(s.done)+len(s.returned) == 0 {
		return nil, long // the host knows that it has ended, or the farewell tells it
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
		return nil, long // the newer request makes the host answer the older one
	}
	due := func(since time.Time, after time.Duration) time.Duration { return after - now.Sub(since) }
	wait := long
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
		// A request must be open for the host to cancel calls.
		wait = min(wait, due(s.progress, outcomesWait))
	}
	if wait > 0 {
		return nil, wait
	}
	return s.compose(free), 0
}

// handBack hands back the closures that have not begun.
func (s *server) handBack() {
	for _, c := range s.queue {
		s.returned = append(s.returned, c.ID)
		delete(s.calls, c.ID)
	}
	s.queue = s.queue[:0]
}

// compose returns a request with the state of the process.
func (s *server) compose(free int) *exchange {
	s.seq++
	x := &exchange{request: wire.ClosuresRequest{
		Process: s.name, Seq: s.seq, Got: s.got, Slots: s.slots, Free: free, Wait: closure.MaxWait, Returned: s.returned,
	}}
	in := &x.request
	switch {
	case s.leaving:
		in.Slots, in.Wait = 0, 0
	case s.stopping:
		in.Slots = 0
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
		in.Held = append(in.Held, o.ID) // the next request reports them
	}
	for id := range s.unanswered {
		if s.calls[id] == nil {
			in.Held = append(in.Held, id)
		}
	}
	for id := range s.calls {
		in.Held = append(in.Held, id)
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

// answered handles the answer to a request, or its failure.
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
	// This comes before the rest: a closure of this answer may use again what was released
	// earlier.
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
	for _, id := range a.Cancel {
		s.cancel(id)
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

// receive adds a closure to call.
func (s *server) receive(in *wire.Call) {
	s.returned = slices.DeleteFunc(s.returned, func(id uint64) bool { return id == in.ID })
	if c := s.calls[in.ID]; c != nil {
		// A restarted host may not know that this process has it.
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

// cancel ends a call, or removes a closure that has not begun.
func (s *server) cancel(id uint64) {
	c := s.calls[id]
	if c == nil || c.told != nil {
		return
	}
	c.told = ErrCallCancelled
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

// begin waits for a closure to call. It returns nil when the process no longer serves.
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
		if !returned { // runtime.Goexit: this goroutine ends, too
			out = outcomeOf(nil, errEndedItsGoroutine, nil)
			s.workers.Go(s.work)
		}
		s.mu.Lock()
		s.busy--
		if s.ctx.Err() != nil && out.Error != nil && c.told == nil {
			// It has ended because Serve ends, so the error does not count as its result.
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

// leave tells the host that the process no longer serves, with the outcomes of its last
// calls.
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

// unsaid reports whether there is news that the host has not received.
func (s *server) unsaid() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.done) > 0 || len(s.returned) > 0
}

// farewell sends the state of the process to the host, for a short time.
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
