package barriers

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// tries is the time between retries while the server is away.
var tries = retry.Backoff{First: 50 * time.Millisecond, Most: 5 * time.Second}

const (
	// firstMoment is the time to wait for more arrivals on this host before it sends the present
	// ones to the round, unless all are known to be present. The wait grows with every message of
	// a round, up to lastMoment. This delays only what people see, because the last arrival is
	// always sent immediately.
	firstMoment, lastMoment = 2 * time.Millisecond, 200 * time.Millisecond
	// lookAfter is the delay before the host checks that an open round has received the arrivals
	// sent to it. lookAgain is the interval between later checks.
	lookAfter, lookAgain = 250 * time.Millisecond, time.Minute
	// lookEach is added to lookAfter for each host that the round may have, because each host's
	// message takes the server some time.
	lookEach = 20 * time.Millisecond
	// callTakes limits one short call to the server.
	callTakes = 10 * time.Second
	// maxLookBack limits how many broken rounds before the open one are searched for an arrival.
	maxLookBack = 64
)

// waiter is a call of [Barriers.Arrive].
type waiter struct {
	Arrival
	digest   string
	came     time.Time
	told     bool        // the round next has it
	sent     bool        // the round next may have it
	answered chan answer // receives exactly one answer
}

// left returns the remaining timeout, which the round counts from when it receives the arrival. Up
// to a second is ignored, so that the round shows the original timeout.
func (w *waiter) left() time.Duration {
	waited := time.Since(w.came)
	if w.Timeout == 0 || waited < time.Second {
		return w.Timeout
	}
	return max(time.Nanosecond, (w.Timeout - waited).Round(time.Millisecond))
}

type answer struct {
	release Release
	err     error
}

// memory is the result of a task's last round.
type memory struct {
	keys []string
	answer
}

// meeting is this host's view of a barrier. A goroutine serves it while a task waits at the barrier
// or a withdrawal must be delivered.
type meeting struct {
	b    *Barriers
	run  spec.RunRef
	name string
	used int // guarded by Barriers.mu

	mu      sync.Mutex
	serving bool
	waiters []*waiter
	leaving []spec.BarrierWithdrawal // of round next
	next    int                      // the open round, or an earlier one
	kept    int                      // the round in the store, or -1 if it has not been read
	opened  bool                     // next may be open on the server because of this host
	// forgotten reports whether the run has released the host. Nothing more is stored.
	forgotten bool
	// last holds the last round of each of this host's tasks. If a task is missing, its arrival
	// must first be sought in earlier rounds.
	last map[string]memory
	wake chan struct{}
}

func newMeeting(b *Barriers, run spec.RunRef, name string) *meeting {
	return &meeting{b: b, run: run, name: name, kept: -1, last: map[string]memory{}, wake: make(chan struct{}, 1)}
}

// keep reads the barrier's number from the store, or writes it after a round. Only the serving
// goroutine calls it, so that a slow disk delays no other barrier.
func (m *meeting) keep() {
	m.mu.Lock()
	next, first, same := m.next, m.kept < 0, m.kept == m.next
	m.mu.Unlock()
	switch {
	case same:
		return
	case first:
		next = m.b.store.number(m.run, m.name)
	default:
		m.b.store.set(m.run, m.name, next)
	}
	m.mu.Lock()
	m.next, m.kept = next, next
	forgotten := m.forgotten
	m.mu.Unlock()
	if forgotten {
		m.b.store.drop(keyOf(m.run))
	}
}

func (m *meeting) id(round int) string { return spec.BarrierID(m.run, m.name, round) }

func (m *meeting) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.serving
}

// forget stops storing the meeting's number, and returns the workflow ID of the round that may be
// open because of this host.
func (m *meeting) forget() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgotten = true
	if !m.opened {
		return ""
	}
	return m.id(m.next)
}

func (m *meeting) enter(w *waiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, ok := m.last[w.Task]; ok && slices.Contains(last.keys, w.Key) {
		w.answered <- last.answer
		return
	}
	m.waiters = append(m.waiters, w)
	if !m.serving {
		m.serving = true
		m.b.actors.Go(m.serve)
	}
	m.nudge()
}

// leave removes the waiter of a cancelled call. If the process has repeated the call with the same
// key because its connection broke, the second waiter remains. leave returns the open round's
// number, which may be too low.
func (m *meeting) leave(w *waiter) (round int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.Index(m.waiters, w)
	if i < 0 {
		return m.next
	}
	m.waiters = slices.Delete(m.waiters, i, i+1)
	if j := slices.IndexFunc(m.waiters, func(o *waiter) bool { return o.Task == w.Task && o.Key == w.Key }); j >= 0 {
		m.waiters[j].told = m.waiters[j].told || w.told
		m.waiters[j].sent = m.waiters[j].sent || w.sent
		return m.next
	}
	if w.sent {
		m.leaving = append(m.leaving, spec.BarrierWithdrawal{Task: w.Task, Key: w.Key})
	}
	m.nudge()
	return m.next
}

func (m *meeting) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// done stops serving and returns true if no waiters or withdrawals remain.
func (m *meeting) done() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serving = len(m.waiters) > 0 || len(m.leaving) > 0
	return !m.serving
}

func (m *meeting) nobody() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiters) == 0
}

// serve exchanges arrivals, withdrawals and answers with the open round on the server until no
// waiters or withdrawals remain.
func (m *meeting) serve() {
	ctx, cancel := context.WithCancel(m.b.ctx)
	defer cancel()
	s := server{meeting: m, moment: firstMoment, again: tries}
	defer s.unwatch()
	for m.keep(); !m.done(); m.keep() {
		if ctx.Err() != nil {
			return
		}
		if err := s.bring(ctx); err != nil {
			m.b.Log.Warn("a barrier cannot reach the server; trying again", zap.String("barrier", m.name), zap.Error(err))
			_ = s.again.Sleep(ctx)
			continue
		}
		s.again.Reset()
		s.wait(ctx)
	}
}

// server is a meeting's serving state.
type server struct {
	*meeting
	moment time.Duration
	again  retry.Backoff // while the server is away
	// result receives the awaited round's result from a goroutine.
	result  chan outcome
	awaited int
	stop    context.CancelFunc
	look    *time.Timer // nil if no message was sent
	// looked receives the round's status from a goroutine.
	looked chan sight
}

type outcome struct {
	spec.BarrierResult
	err error
}

// bring sends the round the withdrawals and arrivals that it lacks.
func (s *server) bring(ctx context.Context) error {
	for {
		if err := s.seekForgotten(ctx); err != nil {
			return err
		}
		if err := s.sendLeaving(ctx); err != nil {
			return err
		}
		batch := s.untold()
		if len(batch) == 0 {
			return nil
		}
		s.await(ctx, batch)
		// The new arrivals may also have been answered before.
		if err := s.seekForgotten(ctx); err != nil {
			return err
		}
		batch = s.untold()
		if len(batch) == 0 {
			continue
		}
		batch = slices.DeleteFunc(slices.Clone(batch), func(w *waiter) bool { return w.digest != batch[0].digest })
		err := s.tell(ctx, batch)
		var refused *RefusedError
		switch {
		case errors.Is(err, ErrClosed):
			if err := s.advance(ctx); err != nil {
				return err
			}
		case errors.As(err, &refused):
			s.answer(batch, answer{err: refused})
		case err != nil:
			return err
		}
	}
}

// untold returns the arrivals to send to the round. It omits tasks that have not been sought in
// earlier rounds. They have just arrived, and a nudge is pending.
func (m *meeting) untold() []*waiter {
	m.mu.Lock()
	defer m.mu.Unlock()
	var batch []*waiter
	for _, w := range m.waiters {
		if _, sought := m.last[w.Task]; sought && !w.told {
			batch = append(batch, w)
		}
	}
	return batch
}

// await gives other tasks on this host a moment to arrive.
func (s *server) await(ctx context.Context, batch []*waiter) {
	t := time.NewTimer(s.moment)
	defer t.Stop()
	for !s.allHere(batch[0]) {
		select {
		case <-s.wake:
		case <-t.C:
			s.moment = min(4*s.moment, lastMoment)
			return
		case <-ctx.Done():
			return
		}
	}
}

// allHere reports whether all participants on this host have arrived.
func (m *meeting) allHere(w *waiter) bool {
	here := w.Here
	if len(here) == 0 {
		here = w.Participants
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting := make(map[string]bool, len(m.waiters))
	for _, o := range m.waiters {
		waiting[o.Task] = true
	}
	return !slices.ContainsFunc(here, func(task string) bool { return !waiting[task] })
}

func (s *server) tell(ctx context.Context, batch []*waiter) error {
	message := spec.BarrierMessage{Host: s.b.Host, Queue: s.b.Queue, Digest: batch[0].digest}
	s.mu.Lock()
	for _, w := range batch {
		message.Arrived = append(message.Arrived, spec.BarrierArrival{Task: w.Task, Key: w.Key, Value: w.Value, Timeout: w.left()})
		// From here on, the round may have the arrival, even if Tell fails. If the task's call is
		// now cancelled, the arrival must be withdrawn.
		w.sent = true
	}
	round := s.next
	s.mu.Unlock()
	in := spec.BarrierInput{Run: s.run, Name: s.name, Round: round, Participants: batch[0].Participants}
	call, cancel := context.WithTimeout(ctx, callTakes)
	defer cancel()
	err := s.b.Server.Tell(call, in, message)
	s.mu.Lock()
	closed := errors.Is(err, ErrClosed)
	for _, w := range batch {
		w.told, w.sent = err == nil, !closed
	}
	s.opened = !closed // or may be
	forgotten := s.forgotten && s.opened
	s.mu.Unlock()
	if forgotten {
		// The run has released the host since, so Forget did not close this round.
		return s.b.Server.End(call, s.id(round), runEnded)
	}
	if err == nil {
		s.watch(ctx, round)
		w := batch[0]
		s.lookIn(lookAfter + time.Duration(len(w.Participants)/max(1, len(w.Here)))*lookEach)
	}
	return err
}

// watch starts to await a round's result, unless it is already awaited.
func (s *server) watch(ctx context.Context, round int) {
	if s.result != nil && s.awaited == round {
		return
	}
	s.unwatch()
	ctx, s.stop = context.WithCancel(ctx)
	s.result, s.awaited = make(chan outcome, 1), round
	result, id := s.result, s.id(round)
	go func() {
		for again := tries; ; {
			r, err := s.b.Server.Result(ctx, id)
			if err == nil || errors.Is(err, ErrClosed) || ctx.Err() != nil {
				result <- outcome{r, err}
				return
			}
			_ = again.Sleep(ctx)
		}
	}()
}

func (s *server) unwatch() {
	if s.stop != nil {
		s.stop()
		s.stop, s.result, s.looked = nil, nil, nil
	}
	if s.look != nil {
		s.look.Stop()
		s.look = nil
	}
	s.moment = firstMoment
}

func (s *server) lookIn(d time.Duration) {
	if s.look == nil {
		s.look = time.NewTimer(d)
		return
	}
	s.look.Reset(d)
}

// wait waits until something must be sent to the round, or something has arrived from it. Without
// waiters, it returns immediately.
func (s *server) wait(ctx context.Context) {
	if s.nobody() {
		return
	}
	var look <-chan time.Time
	if s.look != nil {
		look = s.look.C
	}
	select {
	case <-s.wake:
	case r := <-s.result:
		s.result = nil
		if r.err != nil {
			s.lost()
			_ = s.again.Sleep(ctx)
			return
		}
		s.settle(s.awaited, r.BarrierResult)
	case <-look:
		s.lookAtRound(ctx)
	case seen := <-s.looked:
		s.looked = nil
		s.lookIn(s.saw(seen))
	case <-ctx.Done():
	}
}
