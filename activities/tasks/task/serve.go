package task

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

const (
	// askWhileBusy is the time for which calls continue before the host is asked whether they
	// are cancelled.
	askWhileBusy = 20 * time.Millisecond
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
// When ctx ends, Serve waits for the functions that are being called, and returns the cause. Their results count, except for
// errors: these functions are called again elsewhere.
//
// When a stop of all tasks of the run is requested, Serve does the same, but without ending the
// context of the functions, which may check [Task.ShouldStop], and returns nil.
func (t *Task) Serve(ctx context.Context, functions *Functions, options ...ServeOption) error {
	s := &server{
		task: t, functions: functions, name: rand.Text(), slots: 1,
		calls: map[uint64]*call{}, ended: make(chan struct{}, 1),
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

// server is a process that serves closures. It tells the host its whole state again and again, and
// takes what the answer to its newest request says.
type server struct {
	task      *Task
	functions *Functions
	name      string
	slots     int
	ctx       context.Context
	stop      context.CancelFunc
	resources resources
	workers   sync.WaitGroup
	ended     chan struct{} // has an element after the end of a call

	mu    sync.Mutex
	calls map[uint64]*call
	done  []closure.Outcome // that the host may not have
	seq   uint64
	// cut breaks off the last request, since the state has changed.
	cut context.CancelFunc
	// stopping reports whether no more calls begin.
	stopping bool
}

// serve asks the host until ctx ends, or the tasks of the run stop together.
func (s *server) serve() error {
	for {
		if err := s.ask(s.ctx, closure.MaxWait); err != nil {
			return err
		}
		s.mu.Lock()
		idle, busy, stopping := len(s.calls) == 0, len(s.calls) >= s.slots, s.stopping
		s.mu.Unlock()
		switch {
		case stopping && idle:
			return errStop
		case busy:
			select {
			case <-s.ended:
			case <-time.After(askWhileBusy):
			case <-s.ctx.Done():
			}
		}
	}
}

// state returns a request, and says how many outcomes are in it. s.mu must be held.
func (s *server) state(wait float64) (in wire.ClosuresRequest) {
	s.seq++
	in = wire.ClosuresRequest{Process: s.name, Seq: s.seq, Resources: s.resources.known(), Wait: wait}
	if !s.stopping {
		in.Slots, in.Free = s.slots, s.slots-len(s.calls)
	}
	for size, n := 0, 0; n < len(s.done) && (n == 0 || size < closure.MaxBatchBytes); n++ {
		size += len(s.done[n].Value) + 200
		if e := s.done[n].Error; e != nil {
			size += len(e.Message) + len(e.Traceback)
		}
		in.Done = s.done[:n+1]
	}
	for _, o := range s.done[len(in.Done):] {
		in.Held, in.Wait = append(in.Held, o.ID), 0 // the next request has them
	}
	for id, c := range s.calls {
		in.Held = append(in.Held, id)
		if c.told {
			in.Ending = append(in.Ending, id)
		}
	}
	return in
}

// ask tells the host how the process stands, and takes the answer. It returns nil without an
// answer when the state has changed in between.
func (s *server) ask(ctx context.Context, wait float64) error {
	asking, cut := context.WithCancel(ctx)
	defer cut()
	var answer wire.ClosuresAnswer
	sent := 0
	state := func() ([]byte, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		select {
		case <-s.ended:
		default:
		}
		in := s.state(wait)
		s.cut, sent = cut, len(in.Done)
		return json.Marshal(in)
	}
	for again := tries; ; {
		err := s.task.callWith(asking, http.MethodPost, wire.PathClosures, state, &answer)
		var refused *APIError
		switch {
		case err == nil:
			s.answered(&answer, sent)
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case asking.Err() != nil:
			return nil
		case !errors.As(err, &refused) || refused.Code != wire.CodeClosuresAway:
			return err
		}
		_ = again.Sleep(asking)
	}
}

// answered takes an answer to a request with that number of outcomes.
func (s *server) answered(a *wire.ClosuresAnswer, sent int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = s.done[sent:]
	s.resources.release(a.Released)
	s.resources.learn(a.Resources)
	for _, id := range a.Cancel {
		if c := s.calls[id]; c != nil {
			c.told = true
			c.cancel(ErrCallCancelled)
		}
	}
	if s.stopping = s.stopping || a.Stop; s.stopping {
		return // the next request does not have the closures
	}
	for _, one := range a.Closures {
		c := &call{Closure: one}
		c.ctx, c.cancel = context.WithCancelCause(s.ctx)
		s.calls[c.ID] = c
		s.workers.Go(func() { s.oneCall(c) })
	}
}

var errEndedItsGoroutine = errors.New("the function has ended its goroutine instead of returning")

// oneCall calls a closure, and keeps its outcome for the next request.
func (s *server) oneCall(c *call) {
	out := outcomeOf(nil, errEndedItsGoroutine, nil) // unless it returns
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, c.ID)
		// If it has ended because Serve ends, the error is no result: it is called elsewhere.
		if s.ctx.Err() == nil || out.Error == nil || c.told {
			out.ID = c.ID
			s.done = append(s.done, out)
		}
		c.cancel(nil)
		s.cut()
		select {
		case s.ended <- struct{}{}:
		default:
		}
	}()
	out = s.run(c)
}

// leave tells the host that the process no longer serves, and the outcomes of its last calls.
func (s *server) leave() {
	s.stop()
	s.mu.Lock()
	s.stopping = true
	left := len(s.calls) > 0
	s.mu.Unlock()
	s.farewell()
	s.workers.Wait()
	if left {
		s.farewell()
	}
}

// farewell tells the host how the process stands until it has all outcomes, for a short time.
func (s *server) farewell() {
	ctx, cancel := context.WithTimeout(context.Background(), leavePatience)
	defer cancel()
	for ctx.Err() == nil {
		if err := s.ask(ctx, 0); err != nil {
			return
		}
		s.mu.Lock()
		said := len(s.done) == 0
		s.mu.Unlock()
		if said {
			return
		}
	}
}
