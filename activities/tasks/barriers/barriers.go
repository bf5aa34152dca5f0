package barriers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Server stores the rounds. It may be away for any length of time. After an error other than
// [ErrClosed] and [RefusedError], the outcome is unknown, and the call is retried.
type Server interface {
	// Tell sends a message to a round, opening the round if it does not exist. It returns
	// [ErrClosed] if the round is closed.
	Tell(ctx context.Context, in spec.BarrierInput, m spec.BarrierMessage) error
	// Withdraw sends a message to an open round. It returns [ErrClosed] if the round is closed.
	Withdraw(ctx context.Context, id string, m spec.BarrierMessage) error
	// Result waits until a round is closed. It returns [ErrClosed] if the round does not exist.
	Result(ctx context.Context, id string) (spec.BarrierResult, error)
	// Status returns an open round's status, and which tasks in of have arrived.
	Status(ctx context.Context, id string, of []string) (spec.BarrierStatus, error)
	// End closes an open round that no task waits for.
	End(ctx context.Context, id, why string) error
}

// Config configures [Barriers].
type Config struct {
	Server Server
	// Host is this host's name, and Queue the task queue for its host worker's activities.
	Host, Queue string
	// StateDir is the directory where round numbers are stored.
	StateDir string
	Log      *zap.Logger
	// Waits receives how long tasks waited, by outcome. It may be nil.
	Waits *prometheus.HistogramVec
}

// Arrival is a task's arrival at a barrier.
type Arrival struct {
	Run        spec.RunRef
	Task, Name string
	// Key identifies this call. A call that is repeated because its connection broke has the same
	// key, and gets the same answer.
	Key string
	// Participants lists the tasks that must arrive, including this task.
	Participants []string
	// Here lists this host's participants. Their arrivals are sent together. Empty means unknown.
	Here []string
	// Value is sent to all participants.
	Value string
	// Timeout breaks the barrier for all participants. 0 means no timeout.
	Timeout time.Duration
}

// Release is the result of a successful wait.
type Release struct {
	// Round counts this barrier's rounds, including broken ones, from 0.
	Round int
	// Values holds all tasks' values, or is nil without any.
	Values map[string]string
}

const (
	// released is the outcome of a wait that the barrier's release completed.
	released = "released"
	// maxMeetings limits how many of a run's barriers are kept in memory. The rest are looked
	// up on the server.
	maxMeetings = 1024
	// overdue is how long after a round's timeout a host gives up by itself if the server is away.
	overdue = 10 * time.Second
)

// Barriers holds the barriers of this host's tasks.
type Barriers struct {
	Config
	store *store

	ctx    context.Context
	cancel context.CancelFunc
	actors sync.WaitGroup

	mu   sync.Mutex
	runs map[runKey]*run
}

// runEnded is the reason for closing a round that a run left open.
const runEnded = "the run has ended"

type runKey struct{ workflowID, runID string }

func keyOf(r spec.RunRef) runKey { return runKey{r.WorkflowID, r.RunID} }

// run holds one run generation's barriers.
type run struct {
	spec.RunRef
	meetings map[string]*meeting
	used     int // counts uses of meetings, to find the least recently used one
}

// New returns a host's barriers, with round numbers stored in the state directory.
func New(c Config) *Barriers {
	if c.Waits != nil {
		for _, outcome := range []string{
			released, wire.CodeBarrierTimeout, wire.CodeBarrierBroken, wire.CodeBarrierMismatch, wire.CodeAlreadyWaiting, wire.CodeTooLarge,
		} {
			c.Waits.WithLabelValues(outcome) // starts the series at 0
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Barriers{Config: c, store: openStore(c.StateDir, c.Log), ctx: ctx, cancel: cancel, runs: map[runKey]*run{}}
}

// Close stops all waiting with [ErrShutdown], without withdrawing arrivals: the tasks keep
// waiting, and arrive again with the same keys at the next host worker. Call Close before the
// tasks' connections are closed, because a closed connection counts as a withdrawal.
func (b *Barriers) Close() {
	b.mu.Lock() // keeps enter from adding an actor after cancel
	b.cancel()
	b.mu.Unlock()
	b.actors.Wait()
}

// Arrive waits until all participants have arrived. It returns an [Error] if they will not arrive,
// and a [RefusedError] if the server refuses the arrival. When ctx is done, the arrival is
// withdrawn, because the process is gone.
func (b *Barriers) Arrive(ctx context.Context, a Arrival) (Release, error) {
	came := time.Now()
	release, err := b.arrive(ctx, a)
	outcome := released
	refused, ok := errors.AsType[*Error](err)
	if ok {
		outcome = refused.Code
	}
	if (ok || err == nil) && b.Waits != nil {
		b.Waits.WithLabelValues(outcome).Observe(time.Since(came).Seconds())
	}
	return release, err
}

func (b *Barriers) arrive(ctx context.Context, a Arrival) (Release, error) {
	if err := a.normalise(); err != nil {
		return Release{}, err
	}
	w := &waiter{Arrival: a, digest: spec.ParticipantsDigest(a.Participants), came: time.Now(), answered: make(chan answer, 1)}
	m, err := b.enter(w)
	if err != nil {
		return Release{}, err
	}
	var late <-chan time.Time
	if a.Timeout > 0 {
		t := time.NewTimer(a.Timeout + overdue)
		defer t.Stop()
		late = t.C
	}
	select {
	case answer := <-w.answered:
		return answer.release, answer.err
	case <-ctx.Done():
		// If both have happened, the release counts.
		select {
		case answer := <-w.answered:
			return answer.release, answer.err
		case <-b.ctx.Done():
			return Release{}, ErrShutdown
		default:
		}
		m.leave(w)
		return Release{}, ctx.Err()
	case <-late:
		return Release{}, failure(a.Name, m.leave(w), spec.BarrierResult{Why: spec.BarrierTimeout,
			Message: fmt.Sprintf("the server did not answer %s within the timeout of %s", overdue, a.Timeout)})
	case <-b.ctx.Done():
		return Release{}, ErrShutdown
	}
}

func (a *Arrival) normalise() error {
	if err := spec.CheckBarrierName(a.Name); err != nil {
		return err
	}
	if a.Timeout < 0 {
		return fmt.Errorf("barrier %s: the timeout is %s; use a positive one, or none", a.Name, a.Timeout)
	}
	if a.Key == "" {
		return fmt.Errorf("barrier %s: the arrival has no key; use a unique key", a.Name)
	}
	a.Participants = spec.NormalParticipants(a.Participants)
	if !slices.Contains(a.Participants, a.Task) {
		return refusal(wire.CodeBarrierMismatch, a.Name, a.Task+" is not among its participants: "+strings.Join(a.Participants, ", "))
	}
	a.Here = spec.NormalParticipants(a.Here)
	return nil
}

// enter passes a waiter to its meeting.
func (b *Barriers) enter(w *waiter) (*meeting, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		return nil, ErrShutdown
	}
	r := b.runs[keyOf(w.Run)]
	if r != nil && r.Generation > w.Run.Generation {
		return nil, failure(w.Name, 0, spec.BarrierResult{Message: w.Run.Over()})
	}
	if r == nil || r.Generation != w.Run.Generation {
		// The previous generation was stopped, so its meetings have no waiters.
		r = &run{RunRef: w.Run, meetings: map[string]*meeting{}}
		b.runs[keyOf(w.Run)] = r
	}
	m := r.meetings[w.Name]
	if m == nil {
		m = newMeeting(b, w.Run, w.Name)
		r.meetings[w.Name] = m
		b.forgetOne(r)
	}
	r.used++
	m.used = r.used
	m.enter(w)
	return m, nil
}

// forgetOne drops the least recently used meeting without waiters.
func (b *Barriers) forgetOne(r *run) {
	if len(r.meetings) <= maxMeetings {
		return
	}
	var oldest *meeting
	for _, m := range r.meetings {
		if m.used > 0 && (oldest == nil || m.used < oldest.used) && m.idle() {
			oldest = m
		}
	}
	if oldest != nil {
		delete(r.meetings, oldest.name)
		b.actors.Go(func() { b.store.forget(oldest.run, oldest.name) })
	}
}

// Forget drops everything about a run that has released this host, and closes the run's open
// rounds, since no task waits for their release.
func (b *Barriers) Forget(ctx context.Context, workflowID, runID string) error {
	key := runKey{workflowID, runID}
	b.mu.Lock()
	r := b.runs[key]
	delete(b.runs, key)
	b.mu.Unlock()
	var open []string
	if r != nil {
		for _, m := range r.meetings {
			if id := m.forget(); id != "" {
				open = append(open, id)
			}
		}
	}
	b.store.drop(key)
	var errs []error
	for _, id := range open {
		if err := b.Server.End(ctx, id, runEnded); err != nil && !errors.Is(err, ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
