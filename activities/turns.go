package activities

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/server"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// turns lets the tasks of batches start one after the other, in rank order.
type turns struct {
	mu    sync.Mutex
	byRun map[runkey.Run]*turn
}

// turn is the state of one batch. Another host worker begins with an empty one: it first waits
// for the processes that live.
type turn struct {
	users   int // calls between join and release
	busy    bool
	settled bool // no process of an earlier host worker lives
	waiting []*waiting
	// began is the start of the first task, and failures counts tasks that have failed.
	began    time.Time
	failures int
	// stopped are the tasks that an operator has stopped before their turn.
	stopped map[string]bool
	// report is closed when the tasks that have ended report to the run. It is nil without such tasks.
	report chan struct{}
}

// waiting is a task that waits for its turn.
type waiting struct {
	task  string
	rank  int
	ready chan turnAnswer // has room for one
}

// turnAnswer says how a wait has ended.
type turnAnswer int

const (
	turnStarts   turnAnswer = iota
	turnStopped             // an operator has stopped the task
	turnReturned            // the task returns to the sweep
)

// batchLasts is the time after which a batch starts no more tasks: the sweep starts them again
// in others, so that short trials do not wait for a long one.
const batchLasts = 15 * time.Second

// reportEvery is the time for which tasks that have ended well wait for others: the reports that
// come together cost the server one workflow task.
const reportEvery = time.Second

func newTurns() *turns { return &turns{byRun: map[runkey.Run]*turn{}} }

// of returns the turn of a run, which the caller must release. t.mu must be held.
func (t *turns) of(run runkey.Run) *turn {
	u := t.byRun[run]
	if u == nil {
		u = &turn{stopped: map[string]bool{}}
		t.byRun[run] = u
	}
	return u
}

// join adds a task to those that wait.
func (t *turns) join(run runkey.Run, task string, rank int) *waiting {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.of(run)
	u.users++
	w := &waiting{task: task, rank: rank, ready: make(chan turnAnswer, 1)}
	at, _ := slices.BinarySearchFunc(u.waiting, w, func(a, b *waiting) int { return cmp.Compare(a.rank, b.rank) })
	u.waiting = slices.Insert(u.waiting, at, w)
	u.next(time.Now())
	return w
}

// next gives the turn to the first task that waits.
func (u *turn) next(now time.Time) {
	for !u.busy && len(u.waiting) > 0 {
		w := u.waiting[0]
		u.waiting = u.waiting[1:]
		switch {
		case u.stopped[w.task]:
			w.ready <- turnStopped
			continue
		case !u.began.IsZero() && now.Sub(u.began) > batchLasts:
			w.ready <- turnReturned
			continue
		case u.began.IsZero():
			u.began = now
		}
		u.busy = true
		w.ready <- turnStarts
	}
}

// leave ends the wait of a task, or its turn if it had that.
func (t *turns) leave(run runkey.Run, w *waiting, had bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.byRun[run]
	u.waiting = slices.DeleteFunc(u.waiting, func(o *waiting) bool { return o == w })
	if !had {
		select {
		case a := <-w.ready: // at the same moment
			had = a == turnStarts
		default:
		}
	}
	if had {
		u.busy = false
	}
	u.next(time.Now())
}

// release ends the use of a turn that began with join.
func (t *turns) release(run runkey.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := t.byRun[run]; u != nil {
		if u.users--; u.users == 0 {
			delete(t.byRun, run)
		}
	}
}

// reported returns a channel that is closed when a task that has ended well may report. That is at
// once if no other task of the batch executes or waits for its turn.
func (t *turns) reported(run runkey.Run) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.of(run)
	if u.report == nil {
		u.report = make(chan struct{})
		time.AfterFunc(reportEvery, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			u.reportNow()
		})
	}
	report := u.report
	if !u.busy && len(u.waiting) == 0 {
		u.reportNow()
	}
	return report
}

func (u *turn) reportNow() {
	if u.report != nil {
		close(u.report)
		u.report = nil
	}
}

// failed counts a failure. After too many, the tasks that wait return to the sweep, which decides.
func (t *turns) failed(run runkey.Run, tolerated *int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := t.byRun[run]; u != nil {
		if u.failures++; tolerated != nil && u.failures > *tolerated {
			u.giveBack()
		}
	}
}

// overdue returns the tasks that wait to the sweep once the batch has lasted long enough.
func (t *turns) overdue(run runkey.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u := t.byRun[run]; u != nil && !u.began.IsZero() && time.Since(u.began) > batchLasts {
		u.giveBack()
	}
}

func (u *turn) giveBack() {
	for _, w := range u.waiting {
		w.ready <- turnReturned
	}
	u.waiting = nil
}

// stop stops tasks that wait for their turn, or have not come yet.
func (t *turns) stop(run runkey.Run, tasks []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.of(run)
	for _, task := range tasks {
		u.stopped[task] = true
		u.waiting = slices.DeleteFunc(u.waiting, func(w *waiting) bool {
			if w.task == task {
				w.ready <- turnStopped
			}
			return w.task == task
		})
	}
}

// isSettled reports whether no process of an earlier host worker lives, and settle notes it.
func (t *turns) isSettled(run runkey.Run) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of(run).settled
}

func (t *turns) settle(run runkey.Run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(run).settled = true
}

// takeTurn waits until a task of a batch may start. If it may, the caller must call done after the
// end of the process. Otherwise the task has ended with exit or err.
func (l *taskLease) takeTurn() (done func(), exit spec.Exit, err error) {
	task, _ := l.plan.task(l.key.Task)
	w := l.turns.join(l.key.Run, l.key.Task, task.Rank)
	had := false
	leave := sync.OnceFunc(func() { l.turns.leave(l.key.Run, w, had) })
	answer, err := l.awaitTurn(w)
	had = err == nil && answer == turnStarts
	if had {
		err = l.awaitEarlier()
	}
	switch {
	case err != nil:
		leave()
		return nil, spec.Exit{}, err
	case answer == turnStopped:
		leave()
		return nil, spec.Exit{Cause: spec.CauseOperator, ExitCode: -1, Message: "it was stopped before its turn", Ended: l.now()}, nil
	case answer == turnReturned:
		leave()
		return nil, spec.Exit{Cause: spec.CausePreempted, ExitCode: -1, Message: "it did not get its turn in this batch", Ended: l.now()}, nil
	}
	return leave, spec.Exit{}, nil
}

// awaitTurn waits for the answer. Heartbeats have no details: these mean that a process was started.
func (l *taskLease) awaitTurn(w *waiting) (turnAnswer, error) {
	beat := time.NewTicker(activity.GetInfo(l.ctx).HeartbeatTimeout * 2 / 5)
	defer beat.Stop()
	closed, leaving := l.group.Context(), activity.GetWorkerStopChannel(l.ctx)
	for {
		select {
		case answer := <-w.ready:
			return answer, nil
		case <-closed.Done():
			return 0, errAway
		case <-leaving:
			return 0, errAway
		case <-beat.C:
			l.turns.overdue(l.key.Run)
			ctx, cancel := context.WithTimeout(closed, beatPatience)
			err := l.Server.RecordActivityHeartbeat(ctx, l.token)
			cancel()
			switch {
			case server.IsGone(err):
				return 0, errSuperseded
			case temporal.IsCanceledError(err):
				activity.RecordHeartbeat(l.ctx) // the SDK must learn of it
			}
		case <-l.ctx.Done():
			switch cause := context.Cause(l.ctx); {
			case temporal.IsCanceledError(cause):
				return 0, temporal.NewCanceledError()
			case server.IsGone(cause):
				return 0, errSuperseded
			default:
				return 0, fmt.Errorf("%w: %v", errAway, cause)
			}
		}
	}
}

// awaitEarlier waits for the processes of the batch that an earlier host worker has started.
func (l *taskLease) awaitEarlier() error {
	if l.turns.isSettled(l.key.Run) {
		return nil
	}
	reply, err := l.Supervisor.Processes(l.ctx, l.key.Run)
	if err != nil {
		return err
	}
	for _, p := range reply.Processes {
		if p.Exit != nil {
			continue
		}
		if _, err := l.Supervisor.Wait(l.ctx, p.Ref()); err != nil {
			return fmt.Errorf("%w: %v", errAway, err)
		}
	}
	l.turns.settle(l.key.Run)
	return nil
}

// seenBy returns the cluster that a task finds in its environment, its name there, and the ID of
// its run: a trial of a batch sees itself as a run of its own.
func (p *plan) seenBy(task string) (cluster *hostapi.Cluster, name, run string) {
	c := p.clusterFor(task)
	if p.Spec.Batch == nil {
		return c, task, p.Run.WorkflowID
	}
	m, err := c.Member(task)
	if err != nil {
		return c, task, p.Run.WorkflowID
	}
	run = spec.TrialID(p.Spec.Batch.Sweep, p.Spec.Batch.First+m.Index)
	m.Index, m.Rank, m.LocalRank, m.LocalWorldSize = 0, 0, 0, 1
	c.Members = hostapi.Members{m}
	return c, m.Name(), run
}
