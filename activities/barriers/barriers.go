package barriers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Server is where rounds are kept. It may be away for any time: errors other than
// [ErrClosed] and [RefusedError] mean that nobody knows, and are tried again.
type Server interface {
	// Tell gives a round a message, and opens the round if there is none of that
	// number. [ErrClosed]: there was one.
	Tell(ctx context.Context, in spec.BarrierInput, m spec.BarrierMessage) error
	// Withdraw gives an open round a message. [ErrClosed]: there is none.
	Withdraw(ctx context.Context, id string, m spec.BarrierMessage) error
	// Result waits until a round is closed. [ErrClosed]: there is none.
	Result(ctx context.Context, id string) (spec.BarrierResult, error)
	// State says at once whether there is a round.
	State(ctx context.Context, id string) (RoundState, error)
	// Status asks an open round who is there.
	Status(ctx context.Context, id string) (spec.BarrierStatus, error)
	// End ends an open round for which nobody waits any more.
	End(ctx context.Context, id, why string) error
}

// RoundState is what the server knows of a round.
type RoundState int

// The values of [RoundState].
const (
	None RoundState = iota
	Open
	Closed
)

// Config is what [Barriers] need.
type Config struct {
	Server Server
	// Host is this host's name, and Queue that of its host worker's activities.
	Host, Queue string
	// StateDir is where the numbers of rounds are kept.
	StateDir string
	Log      *zap.Logger
}

// Arrival is a task at a barrier.
type Arrival struct {
	Run        spec.RunRef
	Task, Name string
	// Key names this call of the process. A call that is made again because its
	// connection broke has the same key, and gets the same answer.
	Key string
	// Participants are the tasks that have to arrive, this one among them.
	Participants []string
	// Here are those of them that live on this host. They are announced together.
	// Empty: nobody knows.
	Here []string
	// Value is what it brings for the others.
	Value string
	// Timeout breaks the barrier for everybody. 0: none.
	Timeout time.Duration
}

// Release is the good end of a wait.
type Release struct {
	// Round counts the rounds of this barrier, broken ones included, from 0.
	Round int
	// Values are what the tasks have brought; nil: nobody brought anything.
	Values map[string]string
}

const (
	// maxMeetings bounds the barriers of one run that are remembered. One that is
	// forgotten is looked up on the server.
	maxMeetings = 1024
	// overdue is how much later than the round a host gives up by itself, when the
	// server is away.
	overdue = 10 * time.Second
)

// Barriers are the barriers of the tasks on this host.
type Barriers struct {
	Config
	store *store

	ctx    context.Context
	cancel context.CancelFunc
	actors sync.WaitGroup

	mu   sync.Mutex
	runs map[runKey]*run
}

// runEnded is why a round is ended that its run has left open.
const runEnded = "the run has ended"

type runKey struct{ workflowID, runID string }

func keyOf(r spec.RunRef) runKey { return runKey{r.WorkflowID, r.RunID} }

// run has the barriers of one generation of a run.
type run struct {
	spec.RunRef
	meetings map[string]*meeting
	used     int // counts uses of meetings, for the one used longest ago
}

// New opens the numbers kept in the state directory.
func New(c Config) (*Barriers, error) {
	s, err := openStore(c.StateDir, c.Log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Barriers{Config: c, store: s, ctx: ctx, cancel: cancel, runs: map[runKey]*run{}}, nil
}

// Close ends all waiting with [ErrShutdown], without telling anybody: the tasks
// go on waiting, and arrive again with the same keys at whoever serves this host
// next. It comes before the connections of tasks are closed, which would count as
// their going away.
func (b *Barriers) Close() {
	b.mu.Lock() // so that nobody enters between the two
	b.cancel()
	b.mu.Unlock()
	b.actors.Wait()
	b.store.flush()
}

// Arrive waits until all participants have arrived. It returns a [BrokenError] or
// [TimeoutError] when they will not, a [ParticipantsError] when others wait for
// other participants under this name, and a [RefusedError] when the server does
// not take the arrival. When ctx ends, the arrival is taken back: the
// process has gone away.
func (b *Barriers) Arrive(ctx context.Context, a Arrival) (Release, error) {
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
		// Both may have happened, and a release counts.
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
		return Release{}, &TimeoutError{BrokenError{Name: a.Name, Round: m.leave(w), Why: spec.BarrierTimeout,
			Message: fmt.Sprintf("the server had said nothing %s after the timeout of %s", overdue, a.Timeout)}}
	case <-b.ctx.Done():
		return Release{}, ErrShutdown
	}
}

func (a *Arrival) normalise() error {
	if err := spec.CheckBarrierName(a.Name); err != nil {
		return err
	}
	if a.Timeout < 0 {
		return fmt.Errorf("barrier %s: the timeout is %s; give a positive one, or none", a.Name, a.Timeout)
	}
	if a.Key == "" {
		return fmt.Errorf("barrier %s: the arrival has no key; give it one of its own", a.Name)
	}
	a.Participants = spec.NormalParticipants(a.Participants)
	if !slices.Contains(a.Participants, a.Task) {
		return &ParticipantsError{Name: a.Name, Task: a.Task, Yours: a.Participants}
	}
	a.Here = spec.NormalParticipants(a.Here)
	return nil
}

// enter hands a waiter to the meeting it belongs to.
func (b *Barriers) enter(w *waiter) (*meeting, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		return nil, ErrShutdown
	}
	r := b.runs[keyOf(w.Run)]
	if r != nil && r.Generation > w.Run.Generation {
		return nil, &BrokenError{Name: w.Name, Why: spec.BarrierRunEnded, Message: w.Run.Over()}
	}
	if r == nil || r.Generation != w.Run.Generation {
		// What waited in another generation has been stopped with it.
		r = &run{RunRef: w.Run, meetings: map[string]*meeting{}}
		b.runs[keyOf(w.Run)] = r
	}
	m := r.meetings[w.Name]
	if m == nil {
		m = newMeeting(b, w.Run, w.Name, b.store.number(w.Run, w.Name))
		r.meetings[w.Name] = m
		b.forgetOne(r)
	}
	r.used++
	m.used = r.used
	m.enter(w)
	return m, nil
}

// forgetOne drops the meeting that was used longest ago and at which nobody is.
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
		b.store.forget(oldest.run, oldest.name)
	}
}

// Forget gives up everything of a run that has given this host back: nobody is
// left to be released. Rounds that are still open are ended.
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
