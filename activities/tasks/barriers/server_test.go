package barriers_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/workflows/barrier"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

var errAway = errors.New("the server is away")

// fakeServer keeps rounds in memory. It randomly loses calls before they take effect, and answers
// afterwards.
type fakeServer struct {
	mu     sync.Mutex
	rounds map[string]*fakeRound
	calls  map[string]int
	// told lists the messages that took effect.
	told  []spec.BarrierMessage
	ended []string
	// fault is the percentage of calls that fail.
	fault  int
	random *rand.Rand
	refuse error
}

type fakeRound struct {
	in     spec.BarrierInput
	round  *barrier.Round
	closed chan struct{}
	killed bool
}

func newFakeServer() *fakeServer {
	return &fakeServer{rounds: map[string]*fakeRound{}, calls: map[string]int{}, random: rand.New(rand.NewPCG(1, 2))}
}

// faulty reports whether a call is lost, before or after its effect.
func (s *fakeServer) faulty(call string) (before, after bool) {
	s.calls[call]++
	if s.random.IntN(100) >= s.fault {
		return false, false
	}
	after = s.random.IntN(2) == 0
	return !after, after
}

func failed(fault bool) error {
	if fault {
		return errAway
	}
	return nil
}

func (s *fakeServer) take(r *fakeRound, m spec.BarrierMessage) {
	s.told = append(s.told, m)
	for _, w := range m.Withdrawn {
		r.round.Step(barrier.Withdrawn{Task: w.Task, Key: w.Key, Now: time.Now()})
	}
	for _, a := range m.Arrived {
		r.round.Step(barrier.Arrived{Host: m.Host, Task: a.Task, Key: a.Key, Digest: m.Digest, Value: a.Value, Timeout: a.Timeout, Now: time.Now()})
	}
	s.close(r)
}

func (s *fakeServer) close(r *fakeRound) {
	if (r.round.Result() != nil || r.killed) && !r.isClosed() {
		close(r.closed)
	}
}

func (r *fakeRound) isClosed() bool {
	select {
	case <-r.closed:
		return true
	default:
		return false
	}
}

func (s *fakeServer) Tell(_ context.Context, in spec.BarrierInput, m spec.BarrierMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after := s.faulty("tell")
	if before {
		return errAway
	}
	if s.refuse != nil {
		return &barriers.RefusedError{Err: s.refuse}
	}
	id := spec.BarrierID(in.Run, in.Name, in.Round)
	r := s.rounds[id]
	switch {
	case r == nil:
		r = &fakeRound{in: in, round: barrier.New(in.Participants, time.Now()), closed: make(chan struct{})}
		s.rounds[id] = r
	case r.isClosed():
		return barriers.ErrClosed
	}
	s.take(r, m)
	return failed(after)
}

func (s *fakeServer) Withdraw(_ context.Context, id string, m spec.BarrierMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after := s.faulty("withdraw")
	if before {
		return errAway
	}
	r := s.rounds[id]
	if r == nil || r.isClosed() {
		return barriers.ErrClosed
	}
	s.take(r, m)
	return failed(after)
}

func (s *fakeServer) Result(ctx context.Context, id string) (spec.BarrierResult, error) {
	s.mu.Lock()
	before, after := s.faulty("result")
	r := s.rounds[id]
	s.mu.Unlock()
	if before {
		return spec.BarrierResult{}, errAway
	}
	if r == nil {
		return spec.BarrierResult{}, barriers.ErrClosed
	}
	select {
	case <-r.closed:
	case <-ctx.Done():
		return spec.BarrierResult{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.killed {
		return spec.BarrierResult{State: spec.BarrierBroken, Why: spec.BarrierCancelled, Message: "killed"}, nil
	}
	return *r.round.Result(), failed(after)
}

func (s *fakeServer) Status(_ context.Context, id string, of []string) (spec.BarrierStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, _ := s.faulty("status")
	r := s.rounds[id]
	switch {
	case before:
		return spec.BarrierStatus{}, errAway
	case r == nil:
		return spec.BarrierStatus{}, barriers.ErrClosed
	}
	status := r.round.Status().Of(of)
	status.Name, status.Round = r.in.Name, r.in.Round
	return status, nil
}

func (s *fakeServer) End(_ context.Context, id, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, id)
	r := s.rounds[id]
	if r == nil || r.isClosed() {
		return barriers.ErrClosed
	}
	r.killed = true
	s.close(r)
	return nil
}

// step passes an event to an open round.
func (s *fakeServer) step(id string, e barrier.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.rounds[id]; r != nil {
		r.round.Step(e)
		s.close(r)
	}
}

// messages counts the messages that took effect.
func (s *fakeServer) messages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.told)
}

// asked returns how often a call was made.
func (s *fakeServer) asked(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

// waiting returns the tasks waiting in the round.
func (s *fakeServer) waiting(id string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	tasks := []string{}
	if r := s.rounds[id]; r != nil {
		for _, w := range r.round.Status().Waiting {
			tasks = append(tasks, w.Task)
		}
	}
	return tasks
}
