package barriers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// seekForgotten searches the rounds before the open one for arrivals of tasks that this host does
// not remember. If a task arrives again with a key that was answered, it gets the same answer. The
// last round with the task decides, because a task arrives again only after that. Rounds without
// it are broken.
func (s *server) seekForgotten(ctx context.Context) error {
	s.mu.Lock()
	next := s.next
	var sought []string
	for _, w := range s.waiters {
		if _, ok := s.last[w.Task]; !ok {
			sought = append(sought, w.Task)
		}
	}
	s.mu.Unlock()
	for round := next - 1; round >= max(0, next-maxLookBack) && len(sought) > 0; round-- {
		r, err := s.closedResult(ctx, round)
		if err != nil {
			return err
		}
		s.mu.Lock()
		sought = slices.DeleteFunc(sought, func(task string) bool {
			keys, there := r.Arrived[task]
			if there {
				s.last[task] = memory{keys, s.answerOf(round, r)}
			}
			return there
		})
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, task := range sought {
		s.last[task] = memory{}
	}
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		last := s.last[w.Task]
		if !slices.Contains(last.keys, w.Key) {
			return false
		}
		w.answered <- last.answer
		return true
	})
	return nil
}

// closedResult returns a closed round's result. A round that the server has forgotten counts as
// empty.
func (s *server) closedResult(ctx context.Context, round int) (spec.BarrierResult, error) {
	ctx, cancel := context.WithTimeout(ctx, callTakes)
	defer cancel()
	r, err := s.b.Server.Result(ctx, s.id(round))
	if errors.Is(err, ErrClosed) {
		return spec.BarrierResult{State: spec.BarrierBroken, Arrived: map[string][]string{}}, nil
	}
	return r, err
}

func (s *server) sendLeaving(ctx context.Context) error {
	s.mu.Lock()
	leaving, id := slices.Clone(s.leaving), s.id(s.next)
	s.mu.Unlock()
	if len(leaving) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTakes)
	defer cancel()
	err := s.b.Server.Withdraw(ctx, id, spec.BarrierMessage{Host: s.b.Host, Queue: s.b.Queue, Withdrawn: leaving})
	var refused *RefusedError
	if err != nil && !errors.Is(err, ErrClosed) && !errors.As(err, &refused) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = slices.Delete(s.leaving, 0, min(len(leaving), len(s.leaving)))
	return nil
}

// advance moves on from a closed round. Usually the next round is open. A host that was away, or
// lost its number, may have missed some rounds, and skips these one after another.
func (s *server) advance(ctx context.Context) error {
	s.mu.Lock()
	round := s.next
	s.mu.Unlock()
	r, err := s.closedResult(ctx, round)
	if err == nil {
		s.settle(round, r)
	}
	return err
}

// moveTo makes round the open round. m.mu must be held.
func (m *meeting) moveTo(round int) {
	m.next, m.opened, m.leaving = round, false, nil
}

func (m *meeting) answerOf(round int, r spec.BarrierResult) answer {
	if r.State == spec.BarrierReleased {
		return answer{release: Release{Round: round, Values: r.Values}}
	}
	return answer{err: failure(m.name, round, r)}
}

// settle answers the waiters of a closed round. The remaining ones move on to the next round.
func (s *server) settle(round int, r spec.BarrierResult) {
	s.unwatch()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != round {
		return
	}
	end := s.answerOf(round, r)
	for task, keys := range r.Arrived {
		if _, here := s.last[task]; here {
			s.last[task] = memory{keys, end}
		}
	}
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		switch {
		case slices.Contains(r.Arrived[w.Task], w.Key):
			w.answered <- end
		case r.Arrived == nil && w.sent:
			// The terminated round left no list.
			w.answered <- end
			s.last[w.Task] = memory{[]string{w.Key}, end}
		default:
			if s.refused(w, r.Refused, r.Participants) {
				return true
			}
			w.told, w.sent = false, false
			return false
		}
		return true
	})
	s.moveTo(round + 1)
}

// refused answers a waiter if its arrival was refused. m.mu must be held.
func (m *meeting) refused(w *waiter, refusals []spec.BarrierRefusal, participants []string) bool {
	i := slices.IndexFunc(refusals, func(r spec.BarrierRefusal) bool { return r.Task == w.Task && r.Key == w.Key })
	if i < 0 {
		return false
	}
	err := refusal(wire.CodeBarrierMismatch, m.name, spec.OtherParticipantsText(w.Task, w.Participants, participants))
	switch refusals[i].Why {
	case spec.BarrierTooMany:
		err = refusal(wire.CodeAlreadyWaiting, m.name, w.Task+" is waiting at it too many times; let only one thread wait")
	case spec.BarrierTooLarge:
		err = refusal(wire.CodeTooLarge, m.name, spec.TooLargeText())
	}
	w.answered <- answer{err: err}
	m.last[w.Task] = memory{[]string{w.Key}, answer{err: err}}
	return true
}

func (s *server) answer(waiters []*waiter, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		if !slices.Contains(waiters, w) {
			return false
		}
		w.answered <- a
		return true
	})
}

// lost handles a round that the server no longer knows although arrivals were sent to it. They are
// resent, which reopens it.
func (s *server) lost() {
	s.unwatch()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.waiters {
		w.told, w.sent = false, false
	}
}

// sight is a round's status, and the waiters that it should have.
type sight struct {
	told   []*waiter
	status spec.BarrierStatus
	err    error
}

func (s *server) lookAtRound(ctx context.Context) {
	s.mu.Lock()
	var told []*waiter
	var tasks []string
	for _, w := range s.waiters {
		if w.told {
			told, tasks = append(told, w), append(tasks, w.Task)
		}
	}
	id := s.id(s.next)
	s.mu.Unlock()
	if s.looked != nil || len(told) == 0 {
		return
	}
	looked := make(chan sight, 1)
	s.looked = looked
	go func() {
		ctx, cancel := context.WithTimeout(ctx, callTakes)
		defer cancel()
		status, err := s.b.Server.Status(ctx, id, tasks)
		looked <- sight{told, status, err}
	}()
}

// saw answers refused waiters, and marks arrivals that are missing in the round for resending,
// because a delayed withdrawal may have removed them. It returns the time until the next look.
func (s *server) saw(seen sight) time.Duration {
	if seen.err != nil {
		return tries.Most
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen.status.Round != s.next || seen.status.State != spec.BarrierWaiting {
		return lookAgain
	}
	there := map[string]bool{}
	for _, w := range seen.status.Waiting {
		there[w.Task] = true
	}
	s.waiters = slices.DeleteFunc(s.waiters, func(w *waiter) bool {
		if !slices.Contains(seen.told, w) {
			return false
		}
		if s.refused(w, seen.status.Refused, seen.status.Participants) {
			return true
		}
		w.told = w.told && there[w.Task]
		return false
	})
	return lookAgain
}
