package closurequeue

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/queues"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// All faults between a client and its queue occur, and yet each closure is scheduled once and
// has its value.
func TestNothingIsLostOrScheduledTwice(t *testing.T) {
	f := newFixture(t)
	const n = 5000
	var remotes []*Remote
	for i := range n {
		switch i % 1000 {
		case 100:
			f.Lose(closure.UpdateSchedule, 2)
		case 300:
			f.ContinueAsNew()
		case 500:
			require.NoError(t, f.Flush(patience(t))) // so that there is room for the next closures
			f.Away(true)
		case 600:
			f.Away(false)
		case 700:
			f.LeaveOut()
		}
		remotes = append(remotes, f.schedule(newClosure("same", i)))
	}
	require.NoError(t, f.Join(patience(t)))
	for i, r := range remotes {
		f.assertValue(text(i), r)
	}
	counts := f.Counts()
	assert.Equal(t, uint64(n), counts.Scheduled)
	assert.Equal(t, uint64(n), counts.Finished)
	assert.Equal(t, n, f.Calls("same"))
	assert.Less(t, f.Updates(closure.UpdateSchedule), n/10, "they go together")
}

// CC-09, CC-33, SEED-38: an error is returned once, by the next schedule, whose closure is
// not accepted. Closures scheduled before the error was returned are cancelled.
func TestAnErrorIsRaisedOnce(t *testing.T) {
	f := newFixture(t)
	f.Away(true) // so that they are sent together
	forever := f.schedule(newClosure("forever"))
	fails := f.schedule(newClosure("fails", "Some error."))
	f.Away(false)
	f.assertError("Some error.", fails)
	var err error
	var last *Remote
	for err == nil {
		var r *Remote
		if r, err = f.Schedule(patience(t), newClosure("same", 1)); r != nil {
			last = r
		}
	}
	var said *closure.Error
	require.ErrorAs(t, err, &said)
	assert.Equal(t, "Some error.", said.Message)
	f.assertError("CancelledError: "+closure.TextCancelled, last)
	f.assertError("CancelledError: "+closure.TextCancelled, forever)
	require.NoError(t, f.Join(patience(t)), "the error was returned before")
	f.assertValue("2", f.schedule(newClosure("same", 2)))
}

// CC-07
func TestDoneRaises(t *testing.T) {
	f := newFixture(t)
	wait := f.schedule(newClosure("wait"))
	require.NoError(t, f.Flush(patience(t)))
	done := must.Get(f.Done(patience(t)))(t)
	assert.False(t, done)
	f.assertError("no", f.schedule(newClosure("fails", "no")))
	close(f.release)
	f.assertValue(`"released"`, wait)
	_, err := f.Done(patience(t))
	require.EqualError(t, err, "no")
	done = must.Get(f.Done(patience(t)))(t)
	assert.True(t, done)
}

// In a full queue schedule waits, but done does not (CC-30). Closures that a client has
// accepted count towards the bound like those in the queue.
func TestScheduleWaitsInAFullQueue(t *testing.T) {
	f := newFixture(t, 2)
	taken := make(chan *Remote)
	ctx, cancel := context.WithCancel(patience(t))
	failed := make(chan error, 1)
	go func() {
		for {
			r, err := f.Schedule(ctx, newClosure("wait"))
			if err != nil {
				failed <- err
				return
			}
			taken <- r
		}
	}()
	var remotes []*Remote
	for range queues.Slots + 2 {
		remotes = append(remotes, <-taken)
	}
	for _, r := range remotes {
		_, err := r.ID(patience(t))
		require.NoError(t, err)
	}
	f.eventually("the next one waits in the queue's line", func() bool { return f.Waiting() == 1 })
	done := must.Get(f.Done(patience(t)))(t)
	assert.False(t, done)
	select {
	case <-taken:
		t.Fatal("one more was taken than executes and is queued")
	default:
	}
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	close(f.release)
	for _, r := range remotes {
		f.assertValue(`"released"`, r)
	}
	require.NoError(t, f.Join(patience(t)))
	assert.LessOrEqual(t, f.Calls("wait"), len(remotes)+1)
}

// Until its queue has answered, a client waits for room in a small queue, but not in a
// large one.
func TestTheFirstRoom(t *testing.T) {
	for size, want := range map[int]int{-1: maxPending, 0: maxPending, 1: 0, maxPending - 1: 0, maxPending: maxPending} {
		assert.Equal(t, want, FirstRoom(size), size)
	}
}

// The closures that wait to be sent are bounded in bytes, too.
func TestMuchInBytesWaits(t *testing.T) {
	f := newFixture(t)
	f.Away(true)
	large := newClosure("same", strings.Repeat("x", 240<<10))
	ctx, cancel := context.WithCancel(patience(t))
	defer cancel()
	go func() {
		for {
			if _, err := f.Schedule(ctx, large); err != nil {
				return
			}
		}
	}()
	f.eventually("it is full", func() bool {
		f.Queue.mu.Lock()
		defer f.Queue.mu.Unlock()
		return !f.takes()
	})
	f.Queue.mu.Lock()
	assert.Less(t, len(f.pending), 10)
	f.Queue.mu.Unlock()
	cancel()
	f.Away(false)
	require.NoError(t, f.Join(patience(t)))
	f.Queue.mu.Lock()
	defer f.Queue.mu.Unlock()
	assert.Zero(t, f.pendingBytes)
}

// A closure that is refused does not affect those that were sent with it.
func TestOneOfManyIsRefused(t *testing.T) {
	f := newFixture(t)
	f.Away(true) // so that they are sent together
	first := f.schedule(newClosure("same", 0))
	var good []*Remote
	var bad *Remote
	for i := range 100 {
		if i == 42 {
			bad = f.schedule(newClosure("nobody has this"))
		}
		good = append(good, f.schedule(newClosure("same", i)))
	}
	f.Away(false)
	f.assertValue("0", first)
	for i, r := range good {
		f.assertValue(text(i), r)
	}
	_, err := bad.Wait(patience(t))
	var refused *closure.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, refused.Error(), `no task has registered a function "nobody has this"`)
	_, err = bad.ID(patience(t))
	assert.Equal(t, refused, err)
	require.ErrorIs(t, f.Join(patience(t)), err, "Join returns it")
	require.NoError(t, f.Join(patience(t)))
}

// Values of any age are found by the IDs of their closures.
func TestFetch(t *testing.T) {
	f := newFixture(t)
	fetch := func(id uint64) *Remote {
		t.Helper()
		r := must.Get(f.Fetch(patience(t), id))(t)
		return r
	}
	f.assertValue("1", f.schedule(newClosure("same", 1)))
	f.ContinueAsNew()
	f.assertError("no", f.schedule(newClosure("fails", "no")))
	require.EqualError(t, f.Join(patience(t)), "no")
	waits := f.schedule(newClosure("wait"))
	id := must.Get(waits.ID(patience(t)))(t)
	f.ContinueAsNew()
	f.Queue = f.open()
	f.assertValue("1", fetch(1))
	f.assertError("no", fetch(2))
	later := fetch(id)
	select {
	case <-later.Done():
		t.Error("it has not ended")
	default:
	}
	close(f.release)
	f.assertValue(`"released"`, later)
	for id, message := range map[uint64]string{0: "no closure 0; IDs begin at 1", 4: "no closure 4; only 3 were scheduled"} {
		_, err := f.Fetch(patience(t), id)
		require.EqualError(t, err, message)
	}
	f.Forget()
	f.assertError("NotFoundError: closure 1 has no value: the server no longer has the history with its value", fetch(1))
	f.End("over")
	f.assertValue(`"released"`, fetch(3))
}

// The end of the run ends everything.
func TestTheRunEnds(t *testing.T) {
	f := newFixture(t)
	forever := f.schedule(newClosure("forever"))
	require.NoError(t, f.Flush(patience(t)))
	joined := make(chan error)
	go func() { joined <- f.Join(patience(t)) }()
	f.eventually("join waits", func() bool { return f.Updates(closure.UpdateJoin) == 1 })
	f.End("run iris has ended")
	assert.ErrorContains(t, <-joined, "The run has ended: run iris has ended")
	f.assertError("CancelledError: The run has ended: run iris has ended", forever)
	f.eventually("it takes no more closures", func() bool {
		_, err := f.Schedule(patience(t), newClosure("same", 1))
		return err != nil
	})
	require.ErrorIs(t, f.Join(patience(t)), ErrRunEnded)
}

func TestClose(t *testing.T) {
	f := newFixture(t)
	forever := f.schedule(newClosure("forever"))
	require.NoError(t, f.Flush(patience(t)))
	f.Away(true)
	unsent := f.schedule(newClosure("same", 1))
	f.Close()
	f.assertError("the coordinator was closed", forever)
	_, err := unsent.Wait(patience(t))
	require.Error(t, err)
	_, err = f.Schedule(patience(t), newClosure("same", 1))
	require.EqualError(t, err, "the coordinator was closed")
	require.EqualError(t, f.Join(patience(t)), "the coordinator was closed")
}

// Outcomes may arrive before the IDs of their closures: the first outcome counts, and their
// number is bounded.
func TestEarlyOutcomes(t *testing.T) {
	var e early
	e.cancel(closure.Cancelled{First: 3, Last: 5, Text: "why"})
	e.add(closure.Outcome{ID: 4, Value: []byte("4")})
	e.add(closure.Outcome{ID: 6, Value: []byte("6")})
	e.add(closure.Outcome{ID: 6, Value: []byte("7")})
	o, ok := e.find(4)
	assert.True(t, ok)
	assert.Equal(t, "CancelledError: why", o.Failure().Error())
	o, ok = e.find(6)
	assert.True(t, ok)
	assert.Equal(t, "6", string(o.Value))
	_, ok = e.find(7)
	assert.False(t, ok)
	for i := range uint64(maxEarly) {
		e.add(closure.Outcome{ID: 100 + i})
	}
	assert.True(t, e.full)
	assert.Empty(t, e.outcomes)
}

// If too many arrived early, they are read from the history.
func TestTooManyEarlyOutcomes(t *testing.T) {
	f := newFixture(t)
	require.NoError(t, f.follow(patience(t)))
	f.Queue.mu.Lock()
	f.early.full = true
	f.sending = 1
	f.Queue.mu.Unlock()
	a := must.Get(f.client.Schedule(patience(t), closure.ScheduleRequest{Client: f.name, Batch: 1, Closures: []closure.Closure{newClosure("same", 1)}}))(t)
	require.NoError(t, f.Join(patience(t)))
	r := newRemote(newClosure("same", 1), 0)
	f.sent([]*Remote{r}, a, nil)
	f.assertValue("1", r)
}

// SEED-48: when join returns, the values have arrived, although the queue knows of them
// earlier than a reader of its history.
func TestJoinWaitsForTheValues(t *testing.T) {
	f := newFixture(t)
	f.Still(true)
	r := f.schedule(newClosure("same", 1))
	require.ErrorIs(t, f.joinAndGiveUp(), context.Canceled, "they are not here")
	f.Still(false)
	require.NoError(t, f.Join(patience(t)))
	f.assertEnded(r)
}

// joinAndGiveUp gives up a join once the queue has answered it.
func (f *fixture) joinAndGiveUp() error {
	f.t.Helper()
	ctx, cancel := context.WithCancel(patience(f.t))
	joined := make(chan error, 1)
	go func() { joined <- f.Join(ctx) }()
	f.eventually("the queue has answered", func() bool { return f.Answers(closure.UpdateJoin) > 0 })
	cancel()
	return <-joined
}

// The same is true of closures that an error has cancelled, and of done.
func TestValuesAreThereAfterAnError(t *testing.T) {
	f := newFixture(t)
	for range 20 {
		forever := f.schedule(newClosure("forever"))
		fails := f.schedule(newClosure("fails", "no"))
		require.EqualError(t, f.Join(patience(t)), "no")
		f.assertEnded(forever)
		f.assertEnded(fails)
		r := f.schedule(newClosure("same", 1))
		f.eventually("done", func() bool {
			done := must.Get(f.Done(patience(t)))(t)
			return done
		})
		f.assertEnded(r)
	}
}

// The queue has returned an error and will not return it again, so the client returns it in
// any case.
func TestAnErrorIsToldWithoutTheValues(t *testing.T) {
	f := newFixture(t)
	f.Still(true)
	f.schedule(newClosure("fails", "no"))
	require.EqualError(t, f.joinAndGiveUp(), "no")
}

// The queue may fail while the sender waits for the server.
func TestItBreaksBeforeSomethingIsSent(t *testing.T) {
	f := newFixture(t)
	f.Away(true)
	r := f.schedule(newClosure("same", 1))
	f.eventually("the sender has begun", func() bool { return len(f.following) == 1 })
	f.fail(ErrRunEnded)
	f.Away(false)
	f.eventually("the sender continues", func() bool { return len(f.following) == 0 })
	f.assertError(ErrRunEnded.Error(), r)
	f.Queue.Close()
}

// A closure that no server would accept is refused at once instead of being sent again and
// again.
func TestWhatIsFarTooLargeIsRefused(t *testing.T) {
	f := newFixture(t)
	large := strings.Repeat("x", 10<<20)
	f.Away(true) // the closure does not get there
	_, err := f.Schedule(patience(t), newClosure("same", large))
	var refused *closure.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, err.Error(), "args: the arguments have ")
	_, err = f.Schedule(patience(t), closure.Closure{Function: "same", Args: []byte("{}")})
	require.ErrorAs(t, err, &refused)
	_, err = f.Schedule(patience(t), closure.Closure{Function: "same", Args: []byte(`["` + strings.Repeat("<", 100_000) + `"]`)})
	require.ErrorAs(t, err, &refused, "on its way it has 600,000 bytes")
	_, err = f.CreateResource(patience(t), closure.Resource{Function: "same", Args: newClosure("same", large).Args})
	require.ErrorAs(t, err, &refused)
	f.Away(false)
	require.NoError(t, f.Join(patience(t)), "it is no error of what else was scheduled")
}

// Cancelling all also cancels closures that wait here for room in the queue.
func TestCancelAll(t *testing.T) {
	f := newFixture(t)
	f.Away(true)
	f.schedule(newClosure("same", 0))
	f.eventually("the sender has begun", func() bool { return len(f.following) == 1 })
	unsent := []*Remote{f.schedule(newClosure("same", 1)), f.schedule(newClosure("same", 2))}
	ctx, cancel := context.WithCancel(patience(t))
	cancelled := make(chan error, 1)
	go func() {
		_, err := f.Cancel(ctx)
		cancelled <- err
	}()
	for _, r := range unsent {
		f.assertError("CancelledError: "+closure.TextCancelled, r)
		_, err := r.ID(patience(t))
		require.ErrorContains(t, err, closure.TextCancelled)
	}
	cancel()
	require.ErrorIs(t, <-cancelled, context.Canceled)
	f.Away(false)
	require.NoError(t, f.Join(patience(t)))
	assert.Zero(t, f.Calls("same"))
	f.assertValue("3", f.schedule(newClosure("same", 3)))
	a := must.Get(f.Cancel(patience(t)))(t)
	assert.Zero(t, a.Cancelled)
}

// A request that a queue refuses is never repeated, whether it is a mistake or cannot be met
// now.
func TestWhatIsRefusedIsFinal(t *testing.T) {
	for _, kind := range []string{spec.ErrRefused, spec.ErrInvalidRequest} {
		err := (&Client{}).final(t.Context(), temporal.NewNonRetryableApplicationError("no", kind, nil))
		var refused *closure.RefusedError
		require.ErrorAs(t, err, &refused, kind)
		require.Equal(t, "no", refused.Error())
	}
	require.NoError(t, (&Client{}).final(t.Context(), temporal.NewApplicationError("later", spec.ErrTryAgain)))
}

// A run may have no queue. Requests do not create one.
func TestNoQueue(t *testing.T) {
	s := queues.New(t, nil)
	q := Attach(s, queues.Run)
	t.Cleanup(q.Close)
	for name, ask := range map[string]func(context.Context) error{
		"status": func(ctx context.Context) error { _, err := q.Status(ctx); return err },
		"join":   q.Join,
		"done":   func(ctx context.Context) error { _, err := q.Done(ctx); return err },
		"fetch":  func(ctx context.Context) error { _, err := q.Fetch(ctx, 1); return err },
		"cancel": func(ctx context.Context) error { _, err := q.Cancel(ctx); return err },
		"schedule": func(ctx context.Context) error {
			r, err := q.Schedule(ctx, newClosure("same", 1))
			if err == nil {
				_, err = r.Wait(ctx)
			}
			return err
		},
	} {
		err := ask(patience(t))
		require.ErrorIs(t, err, ErrNoQueue, name)
		var refused *closure.RefusedError
		require.ErrorAs(t, err, &refused, name)
		assert.Equal(t, `run "iris" has no calls: no task called serve(), and nothing was scheduled`, err.Error(), name)
	}
	assert.Zero(t, s.Updates(closure.UpdateJoin))
}

// A caller that has stopped waiting takes no error from those who wait: the queue keeps it for
// the next request.
func TestWhoDoesNotWaitTakesNoError(t *testing.T) {
	f := newFixture(t)
	waits := f.schedule(newClosure("wait"))
	_, err := waits.ID(patience(t))
	require.NoError(t, err)

	watcher := f.open()
	ctx, cancel := context.WithCancel(patience(t))
	joined := make(chan error, 1)
	go func() { joined <- watcher.Join(ctx) }()
	f.eventually("the join waits", func() bool { return f.Updates(closure.UpdateJoin) == 1 })
	cancel()
	require.ErrorIs(t, <-joined, context.Canceled)
	require.Equal(t, 1, f.Updates(closure.UpdateWithdraw))

	f.assertError("no", f.schedule(newClosure("fails", "no")))
	s := must.Get(f.Status(patience(t)))(t)
	assert.Equal(t, closure.QueueFailed, s.State, "no client has asked")
	close(f.release)
	f.assertValue(`"released"`, waits)
	require.EqualError(t, f.Join(patience(t)), "no")
}

// A join that was withdrawn, for instance because its host worker ended, can be requested
// again. One that another caller requested continues even if it is withdrawn here.
func TestAJoinThatWasTakenBackIsAskedForAgain(t *testing.T) {
	f := newFixture(t)
	f.schedule(newClosure("wait"))
	require.NoError(t, f.Flush(patience(t)))
	request := closure.WaitRequest{Client: "task", Call: 1}

	here, cancel := context.WithCancel(patience(t))
	ended := make(chan error, 1)
	go func() { _, err := f.client.Join(here, request); ended <- err }()
	f.eventually("the join waits", func() bool { return f.Updates(closure.UpdateJoin) == 1 })
	elsewhere := make(chan closure.WaitAnswer, 1)
	go func() {
		a, err := f.client.Join(patience(t), request)
		assert.NoError(t, err)
		elsewhere <- a
	}()
	f.eventually("it waits twice", func() bool { return f.Updates(closure.UpdateJoin) == 2 })
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	f.eventually("it is asked for again", func() bool { return f.Updates(closure.UpdateJoin) == 3 })
	close(f.release)
	assert.Equal(t, closure.WaitAnswer{Done: true}, <-elsewhere)
}
