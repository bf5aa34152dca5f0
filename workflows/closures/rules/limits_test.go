package rules

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func one(client string, batch uint64, task string) closure.ScheduleRequest {
	return closure.ScheduleRequest{Client: client, Batch: batch, Closures: []closure.Closure{{Function: "f", Task: task}}}
}

func first(t *testing.T, call *Call[closure.ScheduleAnswer]) uint64 {
	t.Helper()
	a := must.Get(call.Answer())(t)
	return a.First
}

// A thousand clients are remembered. The quietest are forgotten, unless they wait.
func TestClientsAreBounded(t *testing.T) {
	q := New(Config{})
	q.Schedule(one("scheduler", 1, ""))
	waits := q.Join(closure.WaitRequest{Client: "waits", Call: 1})
	require.False(t, waits.Ready())
	const pool = "worker-1"
	for i := range 1500 {
		require.Equal(t, uint64(i+2), first(t, q.Schedule(one(fmt.Sprint("client-", i), 1, pool))))
	}
	assert.Len(t, q.clients.list, maxClients)
	assert.Same(t, waits, q.Join(closure.WaitRequest{Client: "waits", Call: 1}))
	assert.Equal(t, uint64(1501), first(t, q.Schedule(one("client-1499", 1, pool))), "the same as before")
	assert.Equal(t, uint64(1502), first(t, q.Schedule(one("client-0", 1, pool))), "the queue has forgotten it")
}

// Clients with an unreported error are forgotten last.
func TestOwedClientsAreKept(t *testing.T) {
	q := New(Config{})
	q.Schedule(one("owed", 1, ""))
	q.Schedule(one("asks", 1, ""))
	q.Serving(closure.ServingMessage{Host: "a", Queue: "a", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: 1, Functions: []string{"f"}}}})
	q.Actions()
	q.LeaseEnded(1, closure.LeaseResult{Outcomes: []closure.Outcome{{ID: 1, Kind: closure.OutcomeError, Error: &closure.Error{Message: "no"}}}})
	a := must.Get(q.Join(closure.WaitRequest{Client: "asks", Call: 1}).Answer())(t)
	require.ErrorContains(t, a.Raised, "no")
	const pool = "worker-1"
	for i := range 1500 {
		q.Schedule(one(fmt.Sprint("client-", i), 1, pool))
	}
	assert.Len(t, q.clients.list, maxClients)
	a = must.Get(q.Done(closure.WaitRequest{Client: "owed", Call: 1}).Answer())(t)
	require.ErrorContains(t, a.Raised, "no")
}

// A forgotten client still knows its epoch, the number of errors reported to it.
func TestForgottenEpochs(t *testing.T) {
	q := New(Config{})
	r := one("c", 5, "")
	r.Epoch = 7
	a := must.Get(q.Schedule(r).Answer())(t)
	assert.Equal(t, closure.ScheduleAnswer{First: 1, Epoch: 7}, a)
}

// The memory for answers is bounded in bytes, and always keeps the latest.
func TestAnswersAreBounded(t *testing.T) {
	q := New(Config{})
	for round := range uint64(40) {
		for i := range uint64(3) {
			c := q.clients.asking(fmt.Sprint("client-", round))
			r := &request{client: c, kind: asksJoin, number: i + 1, wait: &Call[closure.WaitAnswer]{}}
			c.waits.add(r.number, r.wait)
			q.answerWait(r, &closure.Error{Message: strings.Repeat("x", 20_000)}, true)
			require.LessOrEqual(t, q.clients.bytes, maxAnswerBytes)
			again := q.Join(closure.WaitRequest{Client: c.name, Call: i + 1})
			require.Same(t, r.wait, again)
		}
	}
	sum := 0
	for _, c := range q.clients.list {
		sum += len(c.name) + c.waits.bytes()
	}
	assert.Equal(t, sum, q.clients.bytes)
}

// A queue is full by bytes, too, and a lease is never larger than what may be sent.
func TestBytesAreBounded(t *testing.T) {
	q := New(ConfigOf(closure.QueueInput{}))
	large := []byte(`["` + strings.Repeat("x", 200<<10) + `"]`)
	batch := func(n uint64) *Call[closure.ScheduleAnswer] {
		return q.Schedule(closure.ScheduleRequest{Client: "c", Batch: n, Closures: []closure.Closure{{Function: "f", Args: large}, {Function: "f", Args: large}}})
	}
	var calls []*Call[closure.ScheduleAnswer]
	for i := range uint64(4) {
		calls = append(calls, batch(i+1))
	}
	require.True(t, calls[2].Ready())
	require.False(t, calls[3].Ready(), "%d bytes", q.bytes)
	_, err := calls[3].Answer()
	require.ErrorIs(t, err, ErrWaiting)

	q.Serving(closure.ServingMessage{Host: "h", Queue: "q", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: 6, Functions: []string{"f"}}}})
	actions := q.Actions()
	require.Len(t, actions, 3)
	for _, a := range actions {
		require.Len(t, a.(Dispatch).Closures, 2)
	}
	require.False(t, calls[3].Ready(), "what executes counts as well")
	q.LeaseEnded(1, closure.LeaseResult{Outcomes: []closure.Outcome{{ID: 1}, {ID: 2}}})
	require.True(t, calls[3].Ready())
}

// No more leases are open than one for each slot and four, also where each closure
// needs its own.
func TestLeasesAreBounded(t *testing.T) {
	q := New(Config{})
	large := []byte(`["` + strings.Repeat("x", 240<<10) + `"]`)
	q.Serving(closure.ServingMessage{Host: "h", Queue: "q", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: 1, Functions: []string{"f"}}}})
	q.hosts[0].window = 100
	for i := range uint64(6) {
		require.True(t, q.Schedule(closure.ScheduleRequest{Client: "c", Batch: i + 1, Closures: []closure.Closure{{Function: "f", Args: large}}}).Ready())
	}
	// Two fit into one.
	require.Len(t, q.Actions(), 3)
	q.bytes = 0 // as if they were small
	for i := range uint64(20) {
		require.True(t, q.Schedule(closure.ScheduleRequest{Client: "d", Batch: i + 1, Closures: []closure.Closure{{Function: "f", Args: large}}}).Ready())
		q.bytes = 0
	}
	require.Len(t, q.Actions(), 2)
	require.Len(t, q.hosts[0].leases, 5)
	require.Equal(t, 16, q.queued.all)
}

// Many decisions are split into several events, none of them too large.
func TestDecisionsComeInPieces(t *testing.T) {
	var d decisions
	for id := uint64(60_000); id > 0; id-- {
		if id%2 == 0 {
			d.cancel(id, id)
		}
	}
	d.cancel(1, 10)
	for i := range uint64(50) {
		d.end(closure.Outcome{ID: 100_000 + i, Error: &closure.Error{Message: strings.Repeat("x", 20_000)}})
	}
	ended := map[uint64]bool{}
	for _, a := range d.take() {
		decided := a.(Decide)
		require.LessOrEqual(t, len(decided.Cancelled), decideRanges)
		size := 0
		for _, r := range decided.Cancelled {
			for id := r[0]; id <= r[1]; id++ {
				require.False(t, ended[id])
				ended[id] = true
			}
		}
		for _, o := range decided.Other {
			require.False(t, ended[o.ID])
			ended[o.ID] = true
			size += outcomeBytes(o)
		}
		require.LessOrEqual(t, size, decideBytes)
	}
	require.Len(t, ended, 30_000+5+50)
	require.True(t, d.empty())
	require.Empty(t, d.take())
}

// Closures that are cancelled while no closure is given out take no room, even if that is
// repeated.
func TestCancelledLeaveTheQueue(t *testing.T) {
	q := New(Config{QueueSize: 1000})
	q.Schedule(one("c", 1, ""))
	for i := range uint64(500) {
		r := closure.ScheduleRequest{Client: "c", Batch: i + 2}
		for range 900 {
			r.Closures = append(r.Closures, closure.Closure{Function: "f"})
		}
		last := q.Schedule(r)
		ids := make([]uint64, 900)
		for j := range ids {
			ids[j] = first(t, last) + uint64(j)
		}
		require.Equal(t, closure.CancelAnswer{Cancelled: 900}, q.Cancel(closure.CancelRequest{Closures: ids}))
		require.Len(t, q.Actions(), 1)
	}
	l := q.queues.list[0]
	assert.Less(t, len(l.fresh)+len(l.back), 2000)
	assert.Equal(t, uint64(1), l.head().ID)
	first, last := q.Ended()
	assert.Equal(t, [2]uint64{2, 450_001}, [2]uint64{first, last})
}

// Put back at random, lanes still come out in the order of IDs.
func TestLanesKeepOrder(t *testing.T) {
	ls := newFunctionQueues()
	var l *functionQueue
	for id := uint64(1); id <= 3000; id++ {
		it := newItem(closure.Closure{Function: "f"}, id)
		l = ls.of(it)
		l.append(it)
	}
	for i := range 2000 {
		it := l.head()
		l.pop()
		if i%3 > 0 {
			l.putBack(it)
		}
	}
	before := uint64(0)
	n := 0
	for it := l.head(); it != nil; it = l.head() {
		require.Less(t, before, it.ID)
		before = it.ID
		n++
		l.pop()
	}
	require.Equal(t, 3000-667, n)
	ls.sweep()
	require.Empty(t, ls.list)
}

func TestResourcesAreBounded(t *testing.T) {
	q := New(Config{})
	r := closure.ResourceRequest{Client: "c", Resource: closure.Resource{Function: "f", Args: []byte(`["` + strings.Repeat("x", 100<<10) + `"]`)}}
	for i := range uint64(2) {
		r.Number = i + 1
		a := must.Get(q.CreateResource(r))(t)
		require.Equal(t, i+1, a.ID)
	}
	r.Number = 3
	_, err := q.CreateResource(r)
	require.ErrorContains(t, err, "Reuse resources in many closures")
	// It was not taken, so its number is free.
	r.Resource.Args = nil
	a := must.Get(q.CreateResource(r))(t)
	require.Equal(t, uint64(3), a.ID)
	_, err = q.CreateResource(closure.ResourceRequest{Client: "c", Number: 4, Resource: closure.Resource{Function: "f", ID: 9}})
	require.ErrorContains(t, err, "resource.id: is set; leave it out")
}

// CC-29, SEED-45: released resources leave nothing, in the queue and in its snapshots, in any
// number; and there is room for the next ones.
func TestReleasedResourcesLeaveNothing(t *testing.T) {
	q := New(Config{})
	serve := func(seq int64) {
		q.Serving(closure.ServingMessage{Host: "h", Queue: "h", Seq: seq, Serving: []closure.ServingTask{{Task: "worker-0", Slots: 1, Functions: []string{"f"}}}})
	}
	serve(1)
	var sizes []int
	for i := range uint64(30_000) {
		a := must.Get(q.CreateResource(closure.ResourceRequest{Client: "c", Number: i + 1, Resource: closure.Resource{Function: "f", Args: []byte(`["` + strings.Repeat("x", 100) + `"]`)}}))(t)
		require.Equal(t, i+1, a.ID, "no ID is given twice")
		if i%100 == 0 {
			q.Schedule(closure.ScheduleRequest{Client: "c", Batch: i + 1, Closures: []closure.Closure{{Function: "f", Resources: []uint64{a.ID}}}})
			for _, action := range q.Actions() {
				d := action.(Dispatch)
				q.LeaseEnded(d.Number, closure.LeaseResult{Outcomes: []closure.Outcome{{ID: d.Closures[0].ID}}})
			}
		}
		require.Equal(t, 1, q.ReleaseResources(closure.ReleaseRequest{Client: "c", Resources: []uint64{a.ID}}).Released)
		for _, action := range q.Actions() {
			q.ReleaseEnded(action.(ReleaseOn).Release, true)
		}
		if i%10_000 == 9_999 {
			q.Suspend(true)
			q.Actions()
			snapshot, again := packed(t, q)
			sizes = append(sizes, len(snapshot))
			q = again
			q.Actions()
		}
	}
	require.Empty(t, q.resources.list)
	require.Empty(t, q.resources.owners)
	require.Zero(t, q.resources.bytes)
	require.InDelta(t, sizes[0], sizes[2], 32, "%v", sizes)
}

// Releases for a host that is away take no room, and are sent at once when it is back: with
// leases, too, since there are many.
func TestAHostHearsOfManyReleases(t *testing.T) {
	q := New(Config{})
	serving := closure.ServingMessage{Host: "h", Queue: "h", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: 1, Functions: []string{"f"}}}}
	q.Serving(serving)
	const n = 200
	wanted := closure.Closure{Function: "f"}
	for i := range uint64(n) {
		a := must.Get(q.CreateResource(closure.ResourceRequest{Client: "c", Number: i + 1, Resource: closure.Resource{Function: "f"}}))(t)
		wanted.Resources = append(wanted.Resources, a.ID)
	}
	q.Schedule(closure.ScheduleRequest{Client: "c", Batch: 1, Closures: []closure.Closure{wanted}})
	first := q.Actions()[0].(Dispatch)
	require.Len(t, first.Resources, n)
	q.LeaseEnded(first.Number, closure.LeaseResult{Outcomes: []closure.Outcome{{ID: 1}}})
	q.Schedule(closure.ScheduleRequest{Client: "c", Batch: 2, Closures: []closure.Closure{{Function: "f"}}})
	second := q.Actions()[0].(Dispatch)
	for id := range uint64(n) {
		if id%2 == 0 {
			q.ReleaseResources(closure.ReleaseRequest{Client: "c", Resources: []uint64{id + 1}})
		}
		if id == releaseAtOnce-1 {
			require.Empty(t, q.Actions(), "the next lease will tell it")
		}
	}
	many := q.Actions()[0].(ReleaseOn)
	require.Len(t, many.Released, n/2, "the others are there")
	q.ReleaseEnded(many.Release, false)
	require.Empty(t, q.Actions(), "the host was not reached")
	q.LeaseEnded(second.Number, closure.LeaseResult{Outcomes: []closure.Outcome{{ID: 2}}})
	require.Equal(t, many.Released, q.Actions()[0].(ReleaseOn).Released)
}

// So many may wait and no more.
func TestLineIsBounded(t *testing.T) {
	q := New(Config{})
	q.Schedule(one("c", 1, ""))
	for i := range uint64(maxWaiting) {
		require.False(t, q.Join(closure.WaitRequest{Client: "c", Call: i + 1}).Ready())
	}
	_, err := q.Join(closure.WaitRequest{Client: "c", Call: maxWaiting + 1}).Answer()
	require.ErrorIs(t, err, ErrTooMany)
	_, err = q.Schedule(one("c", 2, "")).Answer()
	require.ErrorIs(t, err, ErrTooMany)
	require.ErrorIs(t, q.CheckSchedule(one("c", 2, "")), ErrTooMany)
	q.Cancel(closure.CancelRequest{})
	a := must.Get(q.Join(closure.WaitRequest{Client: "c", Call: 1}).Answer())(t)
	require.True(t, a.Done)
}

func TestConfigOf(t *testing.T) {
	assert.Equal(t, Config{QueueSize: spec.DefaultQueueSize, TransientUnavailable: 3}, ConfigOf(closure.QueueInput{}))
	assert.Equal(t, Config{QueueSize: -1, TransientUnavailable: 0}, ConfigOf(closure.QueueInput{QueueSize: -1, TransientUnavailable: new(0)}))
}

// Errors from hosts are cut to what the state of a queue can hold.
func TestErrorsAreBounded(t *testing.T) {
	e := bounded(&closure.Error{
		Kind: strings.Repeat("k", 1000), Message: strings.Repeat("ü", closure.MaxError), Traceback: strings.Repeat("ü", closure.MaxTraceback) + "!",
	})
	assert.Len(t, e.Kind, closure.MaxFunctionName)
	assert.Len(t, e.Message, closure.MaxError)
	assert.Len(t, e.Traceback, closure.MaxTraceback-1)
	assert.True(t, strings.HasSuffix(e.Traceback, "ü!"))
}

// The names that tasks have registered are bounded; beyond that any will do.
func TestFunctionsAreBounded(t *testing.T) {
	q := New(Config{})
	m := closure.ServingMessage{Host: "h", Queue: "q", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: 1}}}
	for i := range maxFunctions - 1 {
		m.Serving[0].Functions = append(m.Serving[0].Functions, fmt.Sprint("f", i))
	}
	q.Serving(m)
	require.ErrorContains(t, q.CheckSchedule(one("c", 1, "")), `no task has registered a function "f"`)
	m.Seq, m.Serving[0].Functions = 2, []string{"a", "b"}
	q.Serving(m)
	require.NoError(t, q.CheckSchedule(one("c", 1, "")))
}

// A function that could not be remembered is called where a task has registered more than
// could be, also after a snapshot.
func TestFunctionsBeyondTheBounds(t *testing.T) {
	q := New(Config{})
	var many []string
	for i := range 700 {
		many = append(many, fmt.Sprintf("%0100d", i))
	}
	serving := func(host string, functions ...string) closure.ServingMessage {
		return closure.ServingMessage{Host: host, Queue: host, Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: 9, Functions: functions}}}
	}
	q.Serving(serving("few", "known"))
	q.Serving(serving("many", many...))
	kept := len(q.seen.list)
	require.Less(t, kept, 700, "bounded by bytes")
	_, again := snapshotOf(t, q)
	for _, q := range []*Queue{q, again} {
		q.Suspend(false)
		batch := closure.ScheduleRequest{Client: "c", Batch: 1, Closures: []closure.Closure{{Function: many[699]}, {Function: many[5]}, {Function: "known"}}}
		require.NoError(t, q.CheckSchedule(batch))
		q.Schedule(batch)
		given := map[string][]string{}
		for _, a := range q.Actions() {
			for _, c := range a.(Dispatch).Closures {
				given[a.(Dispatch).Host] = append(given[a.(Dispatch).Host], c.Function)
			}
		}
		require.Equal(t, map[string][]string{"many": {many[699], many[5]}, "few": {"known"}}, given)
		require.Len(t, q.Status().Workers[1].Functions, kept-1)
	}
}

// Names of clients count like answers, and names of tasks that do not answer are cut.
func TestNamesAreBounded(t *testing.T) {
	q := New(Config{})
	long := strings.Repeat("x", closure.MaxFunctionName-4)
	for i := range 2000 {
		q.Done(closure.WaitRequest{Client: fmt.Sprintf("%s%04d", long, i), Call: 1})
		require.Equal(t, 1, q.peers.count(fmt.Sprintf("%0*d%s", i+1, 0, long)))
	}
	require.Less(t, len(q.clients.list), maxAnswerBytes/closure.MaxFunctionName)
	require.Len(t, q.peers, maxPeers)
	for _, p := range q.peers {
		require.LessOrEqual(t, len(p.Task), maxPeer+20)
	}
	sum := 0
	for _, c := range q.clients.list {
		sum += len(c.name) + c.waits.bytes()
	}
	require.Equal(t, sum, q.clients.bytes)
}

// noise is text that packs as badly as any that can be printed.
type noise struct{ *rand.Rand }

func (r noise) text(n int) string {
	var b strings.Builder
	for b.Len() < n {
		if c := byte(' ' + 1 + r.IntN(94)); c != '"' && c != '\\' {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (r noise) word(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := []byte{letters[r.IntN(26)]}
	for len(b) < n {
		b = append(b, letters[r.IntN(len(letters))])
	}
	return string(b)
}

// worst is a queue in which everything bounded except its closures is full of noise.
func worst(r noise) *Queue {
	q := New(ConfigOf(closure.QueueInput{}))
	// Each task has other functions, of more than can be remembered.
	var names []string
	for range 3000 {
		names = append(names, r.text(30))
	}
	for i := range 1000 {
		m := closure.ServingMessage{Host: r.word(63), Queue: "clusterrun/host/" + r.word(72), Seq: 1 << 50, Broker: r.word(26)}
		task := closure.ServingTask{Task: spec.TaskName(r.word(20), i), Process: r.text(64), Slots: 1 + r.IntN(1000)}
		for _, name := range names {
			if r.IntN(2) > 0 {
				task.Functions = append(task.Functions, name)
			}
		}
		m.Serving = []closure.ServingTask{task}
		q.Serving(m)
	}
	for i := range uint64(2 * maxClients) {
		c := q.clients.asking(r.text(closure.MaxFunctionName))
		c.epoch = r.Uint64()
		call := &Call[closure.WaitAnswer]{}
		c.waits.add(r.Uint64(), call)
		q.answerWait(&request{client: c, number: c.waits.list[0].number, wait: call}, &closure.Error{Message: r.text(100), Closure: i}, true)
	}
	for i := range uint64(maxResources) {
		if _, err := q.CreateResource(closure.ResourceRequest{Client: "c", Number: i + 1, Resource: closure.Resource{Function: r.text(10), Args: []byte(`["` + r.text(10) + `"]`)}}); err != nil {
			break
		}
	}
	for range 2 * maxPeers {
		q.peers.count(r.text(closure.MaxFunctionName))
	}
	q.fault = bounded(&closure.Error{Kind: r.text(1000), Message: r.text(10_000), Traceback: r.text(20_000), Task: r.text(1000)})
	return q
}

// A queue can continue as new in any state, if not at once, then when its closures have ended:
// a server takes 2 MiB of input, and ends a workflow that gives more. The rest of the state has
// to fit for that, and leave room.
func TestTheWorstSnapshotFits(t *testing.T) {
	r := noise{rand.New(rand.NewPCG(1, 2))}
	q := worst(r)
	snapshot, _ := snapshotOf(t, q)
	t.Logf("%d KiB", len(snapshot)>>10)
	assert.Less(t, len(snapshot), 1850<<10)

	r = noise{rand.New(rand.NewPCG(1, 2))}
	q = New(ConfigOf(closure.QueueInput{}))
	fill(q, spec.DefaultQueueSize, func(int) closure.Closure {
		return closure.Closure{Function: "f", Args: []byte(`["` + r.text(1000) + `"]`)}
	})
	snapshot, _ = snapshotOf(t, q)
	assert.Less(t, len(snapshot), 1400<<10, "closures that are worth nothing but arguments")
}

// A lease is the input of an activity, for which a server takes 2 MiB as well.
func TestTheWorstLeaseFits(t *testing.T) {
	r := noise{rand.New(rand.NewPCG(1, 2))}
	q := New(Config{})
	for i := range uint64(maxResources) {
		_, err := q.CreateResource(closure.ResourceRequest{Client: "c", Number: i + 1, Resource: closure.Resource{Function: r.text(1), Args: []byte(`["` + r.text(20) + `"]`)}})
		assert.NoError(t, err)
	}
	q.Serving(closure.ServingMessage{Host: "h", Queue: "q", Seq: 1, Serving: []closure.ServingTask{{Task: "worker-0", Slots: closure.MaxBatch}}})
	q.lastID = 1 << 50
	batch := closure.ScheduleRequest{Client: "c", Batch: 1}
	for range closure.MaxBatch {
		c := closure.Closure{Function: r.text(1), Args: []byte(`["` + r.text(350) + `"]`), Kwargs: []byte(`{"` + r.text(150) + `":0}`)}
		for range closure.MaxResources {
			c.Resources = append(c.Resources, 1+r.Uint64N(maxResources))
		}
		batch.Closures = append(batch.Closures, c)
	}
	assert.NoError(t, batch.Validate())
	q.Schedule(batch)
	most := 0
	for _, a := range q.Actions() {
		d := a.(Dispatch)
		text, err := json.Marshal(closure.Lease{Queue: "queue", Closures: d.Closures, Resources: d.Resources})
		assert.NoError(t, err)
		t.Logf("%d closures: %d KiB", len(d.Closures), len(text)>>10)
		most = max(most, len(text))
	}
	assert.Greater(t, most, 1<<20, "the test is of a large lease")
	assert.Less(t, most, 2<<20)
}

// TestRandomScripts lives through random scripts with the checks of FuzzQueue. Other
// ones with CLOSURES_SEED, more with CLOSURES_SCRIPTS.
func TestRandomScripts(t *testing.T) {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return otherwise
	}
	seed := uint64(number("CLOSURES_SEED", 1))
	i := 0
	defer func() {
		if t.Failed() {
			t.Logf("script %d of CLOSURES_SEED=%d", i, seed)
		}
	}()
	for i = range number("CLOSURES_SCRIPTS", 50) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		data := make([]byte, 50+r.IntN(1500))
		for j := range data {
			data[j] = byte(r.UintN(256))
		}
		newFuzzed(t, data).run()
	}
}
