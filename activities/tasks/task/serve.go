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
	// askWhileBusy is the interval at which the host is asked whether running calls are cancelled.
	askWhileBusy = 20 * time.Millisecond
	// leavePatience limits the final report of a process that stops serving.
	leavePatience = 2 * time.Second
)

// ServeOption configures [Task.Serve].
type ServeOption func(*server)

// Slots sets the number of functions called concurrently. The default is 1.
func Slots(n int) ServeOption { return func(s *server) { s.slots = n } }

// Serve calls the functions that coordinators schedule, until ctx is done. A function's context is
// cancelled when the call is cancelled, with [ErrCallCancelled] as its cause, and with ctx. If the
// function then does not return, the host restarts the task and its process is lost. A program
// that the function has started is killed with the call only if it was started by
// [os/exec.CommandContext].
//
// When ctx is done, Serve waits for the functions being called, and returns the cause. Their
// results count, except for errors. Functions with errors are called elsewhere.
//
// When a stop of all the run's tasks is requested, Serve does the same, but without cancelling the
// functions' contexts, and returns nil. Functions may check [Task.ShouldStop].
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
		return fmt.Errorf("slots is %d; use 1 to %d", s.slots, wire.MaxSlots)
	case len(functions.names()) == 0:
		return errors.New("no function is registered, so nothing can be served")
	}
	s.ctx, s.stop = context.WithCancel(ctx)
	err := s.serve()
	s.leave()
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// errStop stops a process from serving when the run's tasks stop together.
var errStop = errors.New("the run's tasks are stopping together")

// server is a process that serves closures. It repeatedly reports its whole state to the host, and
// follows the answer to its newest request.
type server struct {
	task      *Task
	functions *Functions
	name      string
	slots     int
	ctx       context.Context
	stop      context.CancelFunc
	workers   sync.WaitGroup
	ended     chan struct{} // receives an element after a call returned

	mu    sync.Mutex
	calls map[uint64]*call
	done  []closure.Outcome // not acknowledged yet
	seq   uint64
	// cut aborts the last request because the state has changed.
	cut context.CancelFunc
	// stopping prevents new calls.
	stopping bool
}

// serve polls the host until ctx is done or the run's tasks stop together.
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

// state returns a request; in.Done may be only part of s.done. s.mu must be held.
func (s *server) state(wait float64) (in wire.ClosuresRequest) {
	s.seq++
	in = wire.ClosuresRequest{Process: s.name, Seq: s.seq, Wait: wait}
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
		in.Held, in.Wait = append(in.Held, o.ID), 0 // sent in the next request
	}
	for id, c := range s.calls {
		in.Held = append(in.Held, id)
		if c.told {
			in.Ending = append(in.Ending, id)
		}
	}
	return in
}

// ask reports the process's state to the host, and handles the answer. It returns nil without an
// answer if the state has changed.
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

// answered handles the answer to a request that contained sent outcomes.
func (s *server) answered(a *wire.ClosuresAnswer, sent int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = s.done[sent:]
	for _, id := range a.Cancel {
		if c := s.calls[id]; c != nil {
			c.told = true
			c.cancel(ErrCallCancelled)
		}
	}
	if s.stopping = s.stopping || a.Stop; s.stopping {
		return // the next request omits the closures
	}
	for _, one := range a.Closures {
		c := &call{Closure: one}
		c.ctx, c.cancel = context.WithCancelCause(s.ctx)
		s.calls[c.ID] = c
		s.workers.Go(func() { s.oneCall(c) })
	}
}

var errEndedItsGoroutine = errors.New("the function ended its goroutine instead of returning")

// oneCall calls a closure, and stores its outcome for the next request.
func (s *server) oneCall(c *call) {
	out := outcomeOf(nil, errEndedItsGoroutine, nil) // if it does not return
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, c.ID)
		// An error caused by stopping Serve is not a result, and the closure is called elsewhere.
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

// leave reports that the process no longer serves, and the outcomes of its last calls.
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

// farewell reports the state until the host has all outcomes, up to leavePatience.
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
