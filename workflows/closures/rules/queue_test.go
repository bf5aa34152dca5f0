package rules

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

const cancelledText = "CancelledError: " + closure.TextCancelled

// CC-01, CC-02, CC-03, SEED-48: a closure is given out, put back, given out again and finished,
// and then a join returns immediately.
func TestAClosureIsCalledAndFinished(t *testing.T) {
	s := newScript(t, 10)
	s.serve("a", "worker-0")
	assert.True(t, done(t, s.join()).Done)
	assert.Equal(t, closure.SyncAnswer{Scheduled: 1, Room: 10}, done(t, s.schedule("f", 1)))
	assert.False(t, done(t, s.poll()).Done)
	s.ends(closure.BatchResult{Returned: []uint64{1}})
	assert.Equal(t, [][]uint64{{1}}, s.ids(), "it comes out again")
	s.ends(outcomes(lost(1)))
	assert.Equal(t, [][]uint64{{1}}, s.ids())
	waits := s.join()
	assert.False(t, waits.Ready())
	s.returns()
	assert.True(t, done(t, waits).Done)
	assert.True(t, done(t, s.join()).Done)
	assert.Equal(t, []string{"1 = 1"}, s.take("c"))
	assert.Empty(t, s.take("c"))
}

// CC-04, CC-06, CC-07, CC-10: a waiting join raises the first error when it occurs, once. The
// queued closures are cancelled, and then the queue is as new.
func TestAJoinRaisesTheFirstError(t *testing.T) {
	s := newScript(t, 10)
	s.serve("a", "worker-0")
	s.schedule("f", 5)
	require.Equal(t, [][]uint64{{1}, {2}}, s.ids())
	assert.Equal(t, "waits", s.joins())
	s.ends(outcomes(failure(1, "first")))
	assert.Equal(t, map[int]bool{2: true}, s.told)
	assert.Equal(t, []string{"1 ValueError: first", "3 " + cancelledText, "4 " + cancelledText, "5 " + cancelledText}, s.take("c"))
	assert.Equal(t, "waits", s.joins(), "the other batch is still called")
	s.ends(outcomes(failure(2, "second")))
	first := &closure.Error{Kind: "ValueError", Message: "first", Closure: 1, Task: "worker-0"}
	answer := done(t, s.join())
	assert.Equal(t, closure.Outcome{Kind: closure.OutcomeRaised, Error: first}, answer.Outcomes[1])
	assert.Equal(t, answer, done(t, s.join()), "the same request has the same answer")
	assert.Equal(t, []string{"2 ValueError: second", "0 ValueError: first"}, s.take("c"))
	assert.Empty(t, s.running)
	assert.Equal(t, "done", s.joins())
	s.schedule("f", 1)
	s.all()
	assert.True(t, done(t, s.poll()).Done)
	s.schedule("f", 1)
	s.ends(outcomes(failure(7, "later")))
	assert.Equal(t, "later", done(t, s.poll()).Outcomes[2].Error.Message, "done raises, too")
}

// CC-05, CC-09: a schedule after an error raises it, and its own closures are cancelled.
func TestAScheduleRaises(t *testing.T) {
	s := newScript(t, 10)
	s.serve("a", "worker-0")
	s.schedule("f", 3)
	s.ends(outcomes(failure(1, "no")))
	s.schedule("f", 2)
	assert.Equal(t, []string{"1 ValueError: no", "4 " + cancelledText, "5 " + cancelledText}, s.take("c"))
	s.ends(closure.BatchResult{Returned: []uint64{2}})
	s.fails()
	assert.Equal(t, []string{"2 " + cancelledText, "3 " + cancelledText, "0 ValueError: no"}, s.take("c"))
	assert.EqualValues(t, 6, done(t, s.schedule("f", 1)).Scheduled)
}

// CC-08, SEED-39, SEED-58: the drain waits for running calls, which keep their own outcomes.
// Closures that are put back are cancelled.
func TestADrainWaitsForCalls(t *testing.T) {
	s := newScript(t, 10)
	s.serve("a", "worker-0", "worker-1")
	s.schedule("f", 3)
	require.Len(t, s.running, 3)
	s.ends(outcomes(failure(1, "some error")))
	assert.Len(t, s.take("c"), 1)
	waits := s.join()
	assert.Equal(t, map[int]bool{2: true, 3: true}, s.told)
	s.fails() // cancelled before a host had it
	s.ends(closure.BatchResult{Calling: []uint64{3}, Queue: "queue of a"})
	require.Len(t, s.running, 1)
	assert.Equal(t, Batch{Number: 4, Items: s.running[0].Items, Queue: "queue of a", Calling: true, Cancelled: true}, *s.running[0])
	assert.Equal(t, []uint64{3}, s.Input(s.running[0]).Calling)
	other := s.request(closure.SyncRequest{Client: "d", Closures: calls("f", 1)})
	assert.Equal(t, closure.QueueDraining, s.Status().State)
	assert.False(t, other.Ready())
	assert.Len(t, done(t, waits).Outcomes, 1)
	s.ends(outcomes(failure(3, "fake cancellation")))
	assert.EqualValues(t, 1, done(t, other).Scheduled, "the next request goes on")
	assert.Equal(t, []string{"2 " + cancelledText, "3 ValueError: fake cancellation", "0 ValueError: some error"}, s.take("c"))
}

// CC-12: closures for a certain task belong to a pool and affect nothing else.
func TestClosuresOfAPool(t *testing.T) {
	s := newScript(t, 10)
	s.serve("a", "worker-0")
	pool := closure.SyncRequest{Client: "p", Closures: []closure.Closure{
		{Function: "f", Task: "worker-0"}, {Function: "f", Task: "worker-1"},
	}}
	s.request(pool)
	assert.True(t, done(t, s.join()).Done, "nobody waits for them")
	require.Equal(t, [][]uint64{{1}}, s.ids())
	assert.Equal(t, "queue of a", s.running[0].Queue)
	s.ends(outcomes(lost(1)))
	assert.Equal(t, []string{"1 QuarantinedError: closure 1 (f) is not retried again: 1 process exited while executing it, the last one on worker-0"}, s.take("p"))
	s.serve("b", "worker-1")
	require.Equal(t, [][]uint64{{2}}, s.ids(), "it has waited for its task")
	s.schedule("g", 1)
	s.running[0], s.running[1] = s.running[1], s.running[0]
	s.ends(outcomes(failure(3, "no")))
	assert.Equal(t, "ValueError: no", s.joins(), "a drain does not wait for them")
	s.ends(outcomes(failure(2, "own")))
	assert.Equal(t, []string{"2 ValueError: own"}, s.take("p"))
	assert.Equal(t, "done", s.joins(), "and their errors are nobody else's")
}

// CC-62: a closure is called again after its process's loss, and given up after too many.
func TestAClosureThatKillsIsGivenUp(t *testing.T) {
	s := newScript(t, 10)
	s.serve("a", "worker-0")
	s.schedule("f", 1)
	for range closure.MaxLosses {
		s.ends(outcomes(lost(1)))
	}
	s.fails()
	require.Len(t, s.running, 1, "the loss of a host does not count")
	s.ends(outcomes(lost(1)))
	assert.Equal(t, "QuarantinedError: closure 1 (f) is not retried again: 11 processes exited while executing it, the last one on worker-0", s.joins())
}

// CC-76, SEED-53: the third report that a parameter server does not answer is an error.
func TestUnavailableTasksAreCounted(t *testing.T) {
	s := newScript(t, 10)
	s.serve("a", "worker-0")
	s.schedule("f", 1)
	for _, task := range []string{"ps-0", "ps-1", "ps-0", "ps-1"} {
		s.ends(outcomes(unavailable(1, task)))
	}
	s.ends(outcomes(unavailable(1, "ps-1")))
	assert.Equal(t, closure.Error{Kind: closure.ErrUnavailable, Task: "ps-1", Message: "no answer", Closure: 1}, *s.Fault)
	assert.Equal(t, "UnavailableError: no answer", s.joins())
	s.schedule("f", 1)
	s.ends(outcomes(unavailable(2, "ps-1")))
	require.Len(t, s.running, 1, "it is counted anew")
	s.ends(outcomes(unavailable(2, "ps-0")))
	assert.NotEqual(t, "done", s.joins(), "the other one is not")
}

// CC-30, CC-41, SEED-41: schedules wait until they fit, in the order of arrival; closures in
// batches do not count, and closures that are put back do not wait.
func TestAScheduleWaitsForRoom(t *testing.T) {
	s := newScript(t, 2)
	first := s.schedule("f", 3)
	assert.True(t, first.Ready(), "a request fits into an empty queue")
	second := s.request(closure.SyncRequest{Client: "d", Closures: calls("f", 1)})
	assert.False(t, second.Ready())
	s.serve("a", "worker-0")
	assert.Equal(t, closure.SyncAnswer{Scheduled: 1, Room: 0}, done(t, second), "those in batches do not count")
	third := s.request(closure.SyncRequest{Client: "d", Closures: calls("f", 1)})
	waits := s.request(closure.SyncRequest{Client: "e", Join: true, Wait: true})
	assert.False(t, third.Ready())
	s.returns()
	assert.True(t, third.Ready())
	assert.False(t, waits.Ready(), "the join waits for what waits for room")
	s.all()
	assert.True(t, done(t, waits).Done)
	assert.EqualValues(t, 5, s.Status().Counts.Finished)

	s.take("c")
	s.schedule("f", 4)
	large := s.request(closure.SyncRequest{Client: "e", Closures: calls("f", 2)})
	s.running = append(s.running[1:], s.running[0])
	s.ends(closure.BatchResult{Returned: []uint64{7}})
	s.ends(outcomes(failure(6, "no")))
	assert.Equal(t, closure.OutcomeCancelled, done(t, large).Outcomes[0].Kind)
	s.all()
	assert.Equal(t, []string{"1 " + cancelledText, "2 " + cancelledText, "0 ValueError: no"}, s.take("e"))
}

// Batches start with one closure, and grow while calls are short. A host that returns closures is
// busy with a long call.
func TestBatchesGrowWhileCallsAreShort(t *testing.T) {
	s := newScript(t, 10_000)
	s.serve("a", "worker-0", "worker-1")
	for range 3 {
		s.schedule("f", 1000)
	}
	require.Len(t, s.running, 4, "two for each slot")
	for range 12 {
		s.returns()
	}
	require.Len(t, s.running[3].Items, maxInBatch)
	b := s.running[0]
	s.ends(closure.BatchResult{Queue: "queue of a", Calling: []uint64{b.Items[0].ID}})
	require.Len(t, s.running, 4)
	assert.Equal(t, "queue of a", s.running[3].Queue, "its call goes on there")
	s.ends(closure.BatchResult{Took: 60_000, Queue: "queue of a", Calling: []uint64{s.running[0].Items[0].ID}})
	s.running = append(s.running[2:], s.running[:2]...)
	s.returns()
	last := s.running[len(s.running)-1]
	require.Len(t, last.Items, 1)
	assert.Less(t, last.Items[0].ID, uint64(500), "what is put back comes first")
}

// A queue that continues as new keeps its closures, batches, answers, errors and outcomes.
func TestAQueueContinues(t *testing.T) {
	s := newScript(t, 3)
	s.serve("a", "worker-0")
	s.schedule("f", 2)
	s.returns()
	s.schedule("f", 3)
	waits := s.request(closure.SyncRequest{Client: "d", Closures: calls("f", 3)})
	assert.False(t, waits.Ready())
	s.Suspend()
	s.carryOut()
	require.Len(t, s.running, 2)
	assert.True(t, s.told[s.running[0].Number] && s.told[s.running[1].Number])
	s.ends(closure.BatchResult{Queue: "queue of a", Calling: []uint64{2}})
	require.Len(t, s.running, 1, "nothing new is given")
	s.continues()
	assert.False(t, waits.Ready(), "its client asks again")
	assert.Equal(t, "queue of a", s.running[0].Queue)
	assert.True(t, s.running[0].Calling)
	again := s.Sync(closure.SyncRequest{Client: "c", First: 2, Closures: calls("f", 4)})
	assert.EqualValues(t, 5, done(t, again).Scheduled, "those that it has are not queued again")
	s.all()
	assert.EqualValues(t, 5, s.Status().Counts.Scheduled)
	assert.Len(t, s.take("c"), 5)

	s.schedule("f", 1)
	s.ends(outcomes(failure(6, "kept")))
	s.Suspend()
	s.continues()
	assert.Equal(t, closure.QueueFailed, s.Status().State)
	assert.Equal(t, "ValueError: kept", s.joins())

	s.schedule("f", 1)
	s.Suspend()
	s.ends(closure.BatchResult{Queue: "queue of a", Calling: []uint64{7}})
	s.Carried()
	s.Resume()
	s.carryOut()
	require.Len(t, s.running, 1, "a queue that is too large goes on")
	s.all()
	assert.Equal(t, "done", s.joins())
}

// Outcomes are kept for their client until it has taken them. A client that has long been silent
// is forgotten when its outcomes block others.
func TestOutcomesWaitForTheirClient(t *testing.T) {
	s := newScript(t, 100)
	s.serve("a", "worker-0")
	s.schedule("f", 1)
	call := s.request(closure.SyncRequest{Client: "d", Closures: calls("f", 1), Wait: true})
	s.all()
	assert.Len(t, done(t, call).Outcomes, 1)
	assert.Equal(t, []string{"1 = 2"}, s.take("d"), "it was not acknowledged")
	older := s.request(closure.SyncRequest{Client: "d", Wait: true})
	newer := s.request(closure.SyncRequest{Client: "d", Wait: true})
	assert.Empty(t, done(t, older).Outcomes)
	assert.False(t, newer.Ready())
	assert.Equal(t, []string{"1 = 1"}, s.take("c"))

	s.schedule("f", 20)
	for i := 0; len(s.running) > 0; i++ {
		require.Less(t, i, 12, "nothing new is called while so much is kept")
		large := json.RawMessage(`"` + strings.Repeat("x", 200<<10) + `"`)
		s.ends(outcomes(closure.Outcome{ID: s.running[0].Items[0].ID, Value: large}))
	}
	s.Now(time.Unix(1_000_200, 0))
	s.poll()
	assert.Empty(t, s.running, "it asks")
	s.Now(time.Unix(1_000_500, 0))
	s.request(closure.SyncRequest{Client: "e", Closures: calls("f", 1)})
	assert.NotEmpty(t, s.running)
	_, err := s.poll().Answer()
	assert.ErrorContains(t, err, "the values of c were discarded")
}

// Of too many idle clients, only the oldest is forgotten.
func TestTooManyClients(t *testing.T) {
	s := newScript(t, 100)
	for i := range maxClients {
		s.Now(time.Unix(1_000_000+int64(i), 0))
		s.client(strconv.Itoa(i))
	}
	s.client("0")
	s.Now(time.Unix(1_100_000, 0))
	s.client("new")
	require.Len(t, s.Clients, maxClients)
	assert.Equal(t, []string{"0", "2"}, []string{s.Clients[0].Name, s.Clients[1].Name})
}

// A client that schedules one closure gets its outcome with the answer. A request that is abandoned
// leaves the outcome to the next one.
func TestALoneCall(t *testing.T) {
	s := newScript(t, 100)
	s.serve("a", "worker-0")
	s.lone = true
	first := s.schedule("f", 1)
	assert.False(t, first.Ready())
	s.returns()
	assert.Equal(t, "1", string(done(t, first).Outcomes[0].Value))
	assert.Equal(t, done(t, first), done(t, s.Sync(closure.SyncRequest{Client: "c", First: 1, Closures: calls("f", 1)})), "it was sent again")
	s.taken["c"] = 1
	second := s.schedule("f", 1)
	take := s.Sync(closure.SyncRequest{Client: "c", After: 1, First: 2, Closures: calls("f", 2), Wait: true})
	s.carryOut()
	assert.EqualValues(t, 2, done(t, second).Scheduled, "the client has more to schedule")
	s.returns()
	assert.Len(t, done(t, take).Outcomes, 1)
}

// CC-29: a resource is dropped once it was released and no closure uses it.
func TestReleasedResourcesLeaveNothing(t *testing.T) {
	s := newScript(t, 100)
	s.serve("a", "worker-0")
	define := []closure.Resource{{ID: 7, Function: "load"}, {ID: 8, Function: "load"}}
	s.request(closure.SyncRequest{Client: "c", Resources: define, Closures: []closure.Closure{{Function: "f", Resources: []uint64{7}}, {Function: "f", Resources: []uint64{7, 8}}}})
	assert.Equal(t, define[:1], s.Input(s.running[0]).Resources)
	assert.Equal(t, define, s.Input(s.running[1]).Resources)
	s.request(closure.SyncRequest{Client: "c", Released: []uint64{7}})
	s.returns()
	assert.Empty(t, s.Input(s.running[0]).Released)
	s.returns()
	s.schedule("f", 1)
	assert.Equal(t, []uint64{7}, s.Input(s.running[0]).Released)
	assert.Equal(t, define[1:], s.State.Resources)
}

// When the run has finished, all waiting requests are refused.
func TestTheRunEnds(t *testing.T) {
	s := newScript(t, 1)
	s.schedule("f", 1)
	waits := s.join()
	full := s.request(closure.SyncRequest{Client: "d", Closures: calls("f", 1)})
	s.Serving(closure.ServingMessage{Over: "run x has ended"})
	_, err := waits.Answer()
	require.ErrorIs(t, err, ErrEnded)
	_, err = full.Answer()
	require.ErrorIs(t, err, ErrEnded)
	_, err = s.schedule("f", 1).Answer()
	require.ErrorContains(t, err, "the run has ended: run x has ended")
	assert.True(t, s.Ended())
	assert.EqualValues(t, 1, s.Status().Counts.Cancelled)
	assert.Equal(t, closure.QueueEnded, s.Status().State)
}

// The serving tasks are those in the last message of each host.
func TestServing(t *testing.T) {
	s := newScript(t, 10)
	s.Serving(closure.ServingMessage{Host: "b", Queue: "b", Seq: 2, Serving: []closure.ServingTask{{Task: "worker-1", Slots: 2}}})
	s.Serving(closure.ServingMessage{Host: "b", Queue: "b", Seq: 1})
	s.Serving(closure.ServingMessage{Host: "a", Queue: "a", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: 1}}})
	assert.Equal(t, []closure.WorkerStatus{{Task: "worker-0", Host: "a", Slots: 1}, {Task: "worker-1", Host: "b", Slots: 2}}, s.Status().Workers)
	assert.Equal(t, 3, s.slots())
	assert.Equal(t, "b", s.queueOf("worker-1"))
	assert.Equal(t, Config{Size: 2, TransientUnavailable: 5}, ConfigOf(closure.QueueInput{QueueSize: 2, TransientUnavailable: new(5)}))
}
