package taskapi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/task"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// answer is the barrier's answer to a task.
type answer struct {
	task.Release
	err error
}

// arrive makes a task arrive, and returns a channel for its answer.
func (h *host) arrive(ctx context.Context, i int, name string, options ...task.Option) <-chan answer {
	told := make(chan answer, 1)
	t := h.task(i)
	go func() {
		r, err := t.Barrier(ctx, name, options...)
		told <- answer{r, err}
	}()
	return told
}

// awaitArrived waits until n tasks are in the open round.
func (h *host) awaitArrived(name string, n int) {
	h.t.Helper()
	r := h.groups[group{h.run, 0}]
	require.Eventually(h.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return n == 0 && r.open[name] == nil || r.open[name] != nil && len(r.open[name].arrived) == n
	}, time.Minute, time.Millisecond)
}

func broken(t *testing.T, a answer) *task.BarrierError {
	t.Helper()
	var b *task.BarrierError
	require.ErrorAs(t, a.err, &b)
	return b
}

// MPR-11: each task gets the barrier, which holds the task until all have arrived.
func TestBarrierInRounds(t *testing.T) {
	const tasks, rounds = 8, 200
	h := newHost(t, tasks)
	var mu sync.Mutex
	at := make([]int, tasks) // each task's round
	var group sync.WaitGroup
	for i := range tasks {
		c := h.task(i)
		group.Go(func() {
			for round := 1; round <= rounds; round++ {
				mu.Lock()
				at[i] = round
				mu.Unlock()
				r, err := c.Barrier(testContext(t), "step", task.Local())
				if !assert.NoError(t, err) {
					return
				}
				assert.Equal(t, task.Release{Round: round, Index: i, Parties: tasks}, r)
				mu.Lock()
				assert.GreaterOrEqual(t, slices.Min(at), round, "nobody is let go before all have come")
				mu.Unlock()
			}
		})
	}
	group.Wait()
}

// Every task gets all tasks' values, in rank order, even if a round's values exceed one body.
func TestBarrierValues(t *testing.T) {
	h := newHost(t, 3)
	large := strings.Repeat("x", wire.MaxValue)
	bring := func(i int, values ...string) chan answer {
		done := make(chan answer, 1)
		go func() {
			options := []task.Option{task.Local()}
			for _, v := range values {
				options = append(options, task.Value(v))
			}
			r, err := h.task(i).Barrier(testContext(t), "values", options...)
			done <- answer{r, err}
		}()
		return done
	}
	all := []chan answer{bring(0, "zero\n\"<ü>"), bring(1), bring(2, large)}
	for _, one := range all {
		a := <-one
		require.NoError(t, a.err)
		assert.Equal(t, []string{"zero\n\"<ü>", "", large}, a.Values)
	}
	for _, one := range []chan answer{bring(0), bring(1), bring(2)} {
		a := <-one
		require.NoError(t, a.err)
		assert.Nil(t, a.Values)
	}
	a := <-bring(0, large+"x")
	var refused *task.APIError
	require.ErrorAs(t, a.err, &refused)
	assert.Equal(t, "value", refused.Field)
	assert.Contains(t, refused.Message, "it has 65537 bytes; use at most 65536")
}

func TestBarriersDoNotMix(t *testing.T) {
	h := newHost(t, 2)
	ctx := testContext(t)
	a := h.arrive(ctx, 0, "a")
	h.awaitArrived("a", 1)
	b := h.arrive(ctx, 0, "b")
	h.awaitArrived("b", 1)
	require.NoError(t, (<-h.arrive(ctx, 1, "b")).err)
	require.NoError(t, (<-b).err)
	select {
	case got := <-a:
		t.Fatalf("released without worker-1: %+v", got)
	default:
	}
	require.NoError(t, (<-h.arrive(ctx, 1, "a")).err)
	require.NoError(t, (<-a).err)
}

func TestBarrierNames(t *testing.T) {
	h := newHost(t, 1)
	for _, name := range []string{"a/b", "..", ".", "ü %2F?#\"", strings.Repeat("x", wire.MaxName)} {
		r, err := h.task(0).Barrier(testContext(t), name)
		require.NoError(t, err, name)
		assert.Equal(t, 1, r.Round, name)
	}
	_, err := h.task(0).Barrier(testContext(t), strings.Repeat("x", 10<<20))
	require.ErrorContains(t, err, "1 to 200 bytes, not 10485760")
}

func TestParticipants(t *testing.T) {
	h := newHost(t, 3)
	ctx := testContext(t)
	first := h.arrive(ctx, 2, "pair", task.Participants("worker-2", "worker-0"))
	h.awaitArrived("pair", 1)

	var refused *task.APIError
	got := <-h.arrive(ctx, 0, "pair")
	require.ErrorAs(t, got.err, &refused)
	assert.Equal(t, wire.CodeBarrierMismatch, refused.Code)
	assert.Equal(t, `barrier "pair", round 1: tasks already wait at this barrier with participants that differ from those of worker-0 (only in this request: worker-1); specify the same participants in all tasks, or use another name`, refused.Message)

	got = <-h.arrive(ctx, 1, "pair", task.Participants("worker-0", "worker-2"))
	require.ErrorAs(t, got.err, &refused)
	assert.Equal(t, wire.CodeNotAParticipant, refused.Code)
	assert.Contains(t, refused.Message, "worker-1 is not a participant of this barrier")

	assert.Equal(t, task.Release{Round: 1, Index: 0, Parties: 2}, (<-h.arrive(ctx, 0, "pair", task.Participants("worker-0", "worker-2"))).Release)
	assert.Equal(t, task.Release{Round: 1, Index: 1, Parties: 2}, (<-first).Release)

	all := h.arrive(ctx, 0, "type", task.Participants("worker"))
	for i := 1; i < 3; i++ {
		h.awaitArrived("type", i)
		all2 := h.arrive(ctx, i, "type", task.Participants("worker"))
		if i == 2 {
			require.NoError(t, (<-all2).err)
		}
	}
	require.NoError(t, (<-all).err)
}

// A task counts once in a round, even if it has arrived several times. All its arrivals get the
// same answer, even from the next server, and each can be withdrawn separately.
func TestATaskThatArrivesTwice(t *testing.T) {
	h := newHost(t, 2)
	r := h.groups[group{h.run, 0}]
	arrivals := func() int {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.open["x"] == nil {
			return 0
		}
		return len(r.open["x"].arrived)
	}
	const path = wire.PathBarriers + "x"
	answers := map[string]chan string{}
	arrive := func(key string) {
		told := make(chan string, 1)
		answers[key] = told
		before := arrivals()
		go func() {
			_, text, _ := h.do(0, "POST", path, `{"key":"`+key+`"}`)
			told <- text
		}()
		require.Eventually(t, func() bool { return arrivals() == before+1 }, time.Minute, time.Millisecond)
	}
	for _, key := range []string{"a", "b", "c", "d"} {
		arrive(key)
	}
	for i, key := range []string{"c", "d", "a"} { // in the middle, the last, the first
		_, text, _ := h.do(0, "DELETE", path+"?key="+key, "")
		assert.JSONEq(t, `{"withdrawn": true}`, text)
		assert.Contains(t, <-answers[key], wire.CodeBarrierWithdrawn)
		assert.Equal(t, 3-i, arrivals())
	}
	arrive("e")
	want := `{"round":1,"index":0,"parties":2}`
	require.NoError(t, (<-h.arrive(testContext(t), 1, "x")).err)
	assert.JSONEq(t, want, <-answers["b"])
	assert.JSONEq(t, want, <-answers["e"])
	require.NoError(t, h.Close())
	h.start()
	for _, key := range []string{"b", "e"} {
		_, text, _ := h.do(0, "POST", path, `{"key":"`+key+`"}`)
		assert.JSONEq(t, want, text, "the answer may have got lost")
	}
}

// SEED-28: a barrier does not wait for a task outside the spec.
func TestATaskOutsideTheSpec_SEED28(t *testing.T) {
	h := newHost(t, 2)
	extra := *h.view
	extra.Members = append(slices.Clone(h.view.Members), Member{Task: "extra-0", Type: "extra", Rank: 9, Host: "host-a"})
	path := must.Get(h.Listen(Task{ID: runkey.Task{Run: h.run, Task: "extra-0"}, View: &extra}))(t)
	_, err := clientAt(t, path).Barrier(testContext(t), "x")
	require.ErrorContains(t, err, "extra-0 is not a participant of this barrier; its participants are worker-0, worker-1")
	a := h.arrive(testContext(t), 0, "x")
	require.NoError(t, (<-h.arrive(testContext(t), 1, "x")).err)
	require.NoError(t, (<-a).err)
}

func TestParticipantsOnOtherHosts(t *testing.T) {
	h := newHost(t, 2)
	var refused *task.APIError
	_, err := h.task(0).Barrier(testContext(t), "x", task.Participants("worker", "ps-0"), task.Local())
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, wire.CodeNotLocal, refused.Code)
	assert.Contains(t, refused.Message, "ps-0 is not on this host")
	_, err = h.task(0).Barrier(testContext(t), "x", task.Participants("worker", "ps-0"))
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, wire.CodeNotThere, refused.Code)
	h.refused(501, wire.CodeNotThere, "POST", wire.PathBarriers+"x", `{"participants": ["worker", "ps-0"]}`)
	assert.Empty(t, h.groups[group{h.run, 0}].open)
}

// If a run's spec makes all barriers local, they are local even if the arrivals do not request
// that.
func TestAllBarriersAreLocal(t *testing.T) {
	h := newHost(t, 2)
	h.view.Local = true
	h.Barriers = elsewhere(func(context.Context, barriers.Arrival) (barriers.Release, error) {
		assert.Fail(t, "somebody else was asked")
		return barriers.Release{}, errors.New("not here")
	})
	for _, options := range [][]task.Option{nil, {task.Timeout(time.Minute)}, {task.Local()}} {
		first := h.arrive(testContext(t), 0, "x", options...)
		h.awaitArrived("x", 1)
		require.NoError(t, (<-h.arrive(testContext(t), 1, "x", options...)).err)
		require.NoError(t, (<-first).err)
	}
	var refused *task.APIError
	_, err := h.task(0).Barrier(testContext(t), "x", task.Participants("worker", "ps-0"))
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, wire.CodeNotLocal, refused.Code)
	assert.Contains(t, refused.Message, "the run's spec makes all its barriers local (barriers: local), but ps-0 is not on this host")
}

// elsewhere is a function that releases barriers across hosts.
type elsewhere func(context.Context, barriers.Arrival) (barriers.Release, error)

func (e elsewhere) Arrive(ctx context.Context, a barriers.Arrival) (barriers.Release, error) {
	return e(ctx, a)
}

func TestBarriersAcrossHosts(t *testing.T) {
	h := newHost(t, 2)
	answers := make(chan barriers.Arrival, 1)
	h.Barriers = elsewhere(func(_ context.Context, a barriers.Arrival) (barriers.Release, error) {
		answers <- a
		if a.Name == "broken" {
			return barriers.Release{}, &barriers.Error{Code: wire.CodeBarrierTimeout, Message: "nobody came", Missing: []spec.BarrierMissing{{Task: "ps-0"}}}
		}
		return barriers.Release{Round: 6}, nil
	})
	r := must.Get(h.task(1).Barrier(testContext(t), "x", task.Participants("worker", "ps-0"), task.Timeout(time.Minute)))(t)
	assert.Equal(t, task.Release{Round: 7, Index: 1, Parties: 3}, r)
	a := <-answers
	assert.Equal(t, []string{"worker-0", "worker-1", "ps-0"}, a.Participants)
	assert.Equal(t, []string{"worker-0", "worker-1"}, a.Here)
	assert.InDelta(t, time.Minute, a.Timeout, float64(10*time.Second))
	assert.NotEmpty(t, a.Key)

	_, err := h.task(1).Barrier(testContext(t), "broken")
	assert.Zero(t, (<-answers).Timeout)
	b := broken(t, answer{err: err})
	assert.True(t, b.Timeout)
	assert.Equal(t, []string{"ps-0"}, b.Missing)

	// The barrier is notified that the caller has gone.
	gone := make(chan error, 1)
	h.Barriers = elsewhere(func(ctx context.Context, _ barriers.Arrival) (barriers.Release, error) {
		answers <- barriers.Arrival{}
		<-ctx.Done()
		gone <- ctx.Err()
		return barriers.Release{}, ctx.Err()
	})
	ctx, cancel := context.WithCancel(context.Background())
	told := h.arrive(ctx, 0, "x")
	<-answers
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	require.ErrorIs(t, (<-told).err, context.Canceled)

	// With task.Local, the host releases the barrier on its own.
	first := h.arrive(testContext(t), 0, "x", task.Local())
	require.NoError(t, (<-h.arrive(testContext(t), 1, "x", task.Local())).err)
	require.NoError(t, (<-first).err)
}

// A task that gives up during the release is released.
func TestGivingUpTooLateAcrossHosts(t *testing.T) {
	h := newHost(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	h.Barriers = elsewhere(func(waiting context.Context, _ barriers.Arrival) (barriers.Release, error) {
		cancel()
		<-waiting.Done()
		return barriers.Release{Round: 2}, nil // both have happened, and the release counts
	})
	r := must.Get(h.task(0).Barrier(ctx, "x"))(t)
	assert.Equal(t, task.Release{Round: 3, Index: 0, Parties: 1}, r)
}

func TestBarrierTimeout(t *testing.T) {
	h := newHost(t, 3)
	ctx := testContext(t)
	patient := h.arrive(ctx, 1, "x")
	h.awaitArrived("x", 1)
	for _, a := range []answer{<-h.arrive(ctx, 0, "x", task.Timeout(20*time.Millisecond)), <-patient} {
		b := broken(t, a)
		assert.True(t, b.Timeout)
		assert.Equal(t, []string{"worker-2"}, b.Missing)
		assert.Equal(t, []string{"worker-0", "worker-1"}, b.Arrived)
		assert.Regexp(t, `^barrier "x", round 1: worker-2 did not arrive within (1\d|20)ms; arrived: worker-0, worker-1, the first at 20..-..-..T`, b.Message)
	}
	b := broken(t, <-h.arrive(ctx, 2, "x", task.Timeout(0)))
	assert.Contains(t, b.Message, "round 2: worker-0, worker-1 had not arrived, and the timeout is 0")

	// A timeout does not affect released tasks.
	var all []<-chan answer
	for i := range 3 {
		all = append(all, h.arrive(ctx, i, "x", task.Timeout(time.Minute)))
		if i < 2 {
			h.awaitArrived("x", i+1)
		}
	}
	for _, a := range all {
		got := <-a
		require.NoError(t, got.err)
		assert.Equal(t, 3, got.Round)
	}
}

// A permanently ended task breaks the rounds that wait for it.
func TestAParticipantEnds(t *testing.T) {
	h := newHost(t, 3)
	ctx := testContext(t)
	waiting := []<-chan answer{h.arrive(ctx, 0, "x"), h.arrive(ctx, 1, "x")}
	other := h.arrive(ctx, 0, "y", task.Participants("worker-0", "worker-1"))
	h.awaitArrived("x", 2)
	h.awaitArrived("y", 1)
	h.Ended(h.ids[2], false, "exited with exit code 1")
	h.awaitArrived("x", 2)
	h.Ended(h.ids[2], true, "exited with exit code 1")
	for _, w := range waiting {
		b := broken(t, <-w)
		assert.False(t, b.Timeout)
		assert.Contains(t, b.Message, "worker-2 exited with exit code 1 without arriving and does not come back")
		assert.Equal(t, []string{"worker-2"}, b.Missing)
	}
	b := broken(t, <-h.arrive(ctx, 0, "x"))
	assert.Contains(t, b.Message, "worker-2 exited with exit code 1")
	require.NoError(t, (<-h.arrive(ctx, 1, "y", task.Participants("worker-0", "worker-1"))).err, "those without it are not touched")
	require.NoError(t, (<-other).err)

	h.listen(2, 1) // the task was restarted anyway
	all := []<-chan answer{h.arrive(ctx, 0, "x"), h.arrive(ctx, 1, "x"), h.arrive(ctx, 2, "x")}
	for _, w := range all {
		require.NoError(t, (<-w).err)
	}
}

// The round belongs to the barrier: a restarted task joins the open round.
func TestAParticipantIsStartedAgain(t *testing.T) {
	h := newHost(t, 2)
	ctx := testContext(t)
	first := h.arrive(ctx, 0, "x")
	h.awaitArrived("x", 1)
	h.Ended(h.ids[0], false, "was killed by SIGKILL")
	assert.Contains(t, broken(t, <-first).Message, "the process of worker-0 that arrived has exited")
	h.awaitArrived("x", 0)
	other := h.arrive(ctx, 1, "x")
	h.awaitArrived("x", 1)
	h.listen(0, 1)
	require.NoError(t, (<-h.arrive(ctx, 0, "x")).err)
	require.NoError(t, (<-other).err)
}

func TestAClosedConnectionIsAWithdrawal(t *testing.T) {
	h := newHost(t, 2)
	ctx, cancel := context.WithCancel(context.Background())
	gone := h.arrive(ctx, 0, "x")
	h.awaitArrived("x", 1)
	cancel()
	require.ErrorIs(t, (<-gone).err, context.Canceled)
	h.awaitArrived("x", 0)
	other := h.arrive(testContext(t), 1, "x")
	h.awaitArrived("x", 1)
	require.NoError(t, (<-h.arrive(testContext(t), 0, "x")).err, "it is not waiting already")
	require.NoError(t, (<-other).err)
}

// An arrival that is sent twice counts once, and gets the same answer.
func TestAnArrivalThatComesAgain(t *testing.T) {
	h := newHost(t, 2)
	const path = wire.PathBarriers + "x"
	type reply struct {
		status int
		body   string
	}
	replies := make(chan reply, 2)
	send := func() {
		status, body, _ := h.do(0, "POST", path, `{"key": "k1"}`)
		replies <- reply{status, body}
	}
	go send()
	h.awaitArrived("x", 1)
	go send()
	r := h.groups[group{h.run, 0}]
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.open["x"].arrived[arrivalID{"worker-0", "k1"}].waiting) == 2
	}, time.Minute, time.Millisecond)
	require.NoError(t, (<-h.arrive(testContext(t), 1, "x")).err)
	want := reply{200, "{\"round\":1,\"index\":0,\"parties\":2}\n"}
	assert.Equal(t, want, <-replies)
	assert.Equal(t, want, <-replies)
	send()
	assert.Equal(t, want, <-replies, "the answer may have got lost")
	assert.Empty(t, r.open)
	status, body, _ := h.do(0, "DELETE", path+"?key=k1", "")
	assert.Equal(t, reply{200, "{\"withdrawn\":false,\"released\":{\"round\":1,\"index\":0,\"parties\":2}}\n"}, reply{status, body}, "too late")

	// Another server also has the answer.
	require.NoError(t, h.Close())
	h.start()
	send()
	assert.Equal(t, want, <-replies)
	second := h.arrive(testContext(t), 0, "x")
	h.awaitArrived("x", 1)
	got := <-h.arrive(testContext(t), 1, "x")
	assert.Equal(t, task.Release{Round: 2, Index: 1, Parties: 2}, got.Release, "rounds go on")
	require.NoError(t, (<-second).err)
}

// The server may be killed while tasks wait: they arrive again at the next one.
func TestTheServerIsStartedAgain(t *testing.T) {
	h := newHost(t, 3)
	ctx := testContext(t)
	waiting := []<-chan answer{h.arrive(ctx, 0, "x"), h.arrive(ctx, 1, "x", task.Timeout(time.Minute))}
	h.awaitArrived("x", 2)
	require.NoError(t, h.Close())
	late := h.arrive(ctx, 2, "x") // while the server is down
	h.start()
	for _, w := range append(waiting, late) {
		got := <-w
		require.NoError(t, got.err)
		assert.Equal(t, 1, got.Round)
	}
}

// A new generation has another cluster, and closes the previous rounds.
func TestGenerations(t *testing.T) {
	h := newHost(t, 2)
	old := h.arrive(testContext(t), 0, "x")
	h.awaitArrived("x", 1)
	path := must.Get(h.Listen(Task{ID: runkey.Task{Run: h.run, Generation: 1, Task: "worker-0"}, View: h.view}))(t)
	assert.Contains(t, broken(t, <-old).Message, "the run has restarted all tasks")
	assert.NotEqual(t, h.paths[0], path)
	left := must.Get(os.ReadDir(filepath.Dir(path)))(t)
	assert.Len(t, left, 1, "the socket; nothing of the generation before")
	info := must.Get(clientAt(t, path).Info(testContext(t)))(t)
	assert.Equal(t, 1, info.Generation)
	h.Server.Release(h.run)
	assert.NoFileExists(t, path)
	assert.NoDirExists(t, filepath.Dir(path))
	assert.Empty(t, h.tasks)
	assert.Empty(t, h.groups)
}

func TestNotATask_MPR12_SEED28(t *testing.T) {
	t.Setenv(SocketVar, "")
	_, err := task.Current()
	require.ErrorIs(t, err, task.ErrNotATask)
	assert.Contains(t, err.Error(), "barrier is not defined. It is likely because you are calling get_barrier() in the main process. get_barrier() can only be called in the subprocesses.")
}

func TestNoHost(t *testing.T) {
	c := clientAt(t, filepath.Join(t.TempDir(), "nobody"))
	// ctx expires between two tries, so that the last one has failed with a reason.
	ctx, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
	defer cancel()
	err := c.Result(ctx, 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "no such file")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	err = clientAt(t, filepath.Join(file, "x")).Result(context.Background(), 1)
	require.ErrorContains(t, err, "not a directory", "what does not pass is not tried again")
}

// The round log stays small, and its relevant part is read.
func TestRoundLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rounds")
	l := &roundLog{path: path}
	name := "a \"name\"\x7f=ü"
	brought := func(i int) []string {
		if i%2 == 0 {
			return nil
		}
		return []string{"", "two\nlines, \"" + strconv.Itoa(i) + "\" \\"}
	}
	for i := 1; i <= 20000; i++ {
		l.add(released{name, i, []string{"a-0", "b-0"}, map[string][]string{"a-0": {"k" + strconv.Itoa(i)}, "b-0": {"l=" + strconv.Itoa(i)}}, brought(i)})
		l.write(func() []byte { b := l.unwritten; l.unwritten = nil; return b })
	}
	require.NoError(t, l.err)
	l.close()
	f := must.Get(os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0))(t)
	_, err := f.WriteString(`{"name":"a","round":20001,"part`) // cut short
	require.NoError(t, errors.Join(err, f.Close()))
	for _, p := range []string{path, l.oldPath()} {
		info := must.Get(os.Stat(p))(t)
		assert.Less(t, info.Size(), int64(roundLogSize+1000))
	}
	l = &roundLog{path: path}
	defer l.close()
	r := newRounds(l)
	assert.Equal(t, map[string]int{name: 20000}, r.counts)
	for i := 20000; i > 20000-keepAnswers; i-- {
		out, ok := r.answers["b-0"].find(name, fmt.Sprintf("l=%d", i))
		require.True(t, ok, i)
		assert.Equal(t, &wire.Released{Round: i, Index: 1, Parties: 2, Values: brought(i)}, out.released)
	}
}

// A released round waits for its log. A hanging disk does not delay other rounds.
func TestLogOfRoundsHangs(t *testing.T) {
	h := newHost(t, 2)
	r := h.groups[group{h.run, 0}]
	arrive := func(task, name string, of ...string) chan outcome {
		answer := make(chan outcome, 1)
		go r.arrive(barriers.Arrival{Task: task, Name: name, Key: "k", Participants: of}, func(o outcome) { answer <- o })
		return answer
	}
	r.log.mu.Lock()
	released := arrive("worker-0", "own", "worker-0")
	waits := arrive("worker-0", "both", "worker-0", "worker-1")
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.log.unwritten) > 0 && r.open["both"] != nil
	}, time.Minute, time.Millisecond)
	r.processEnded("worker-1", true, "exited with exit code 1")
	require.NotNil(t, (<-waits).problem)
	require.Empty(t, released)
	r.log.mu.Unlock()
	require.NotNil(t, (<-released).released)
}

// A server's memory does not grow with the barriers it has released.
func TestManyBarrierNames(t *testing.T) {
	h := newHost(t, 1)
	r := h.groups[group{h.run, 0}]
	for i := range 3 * maxNames {
		r.arrive(barriers.Arrival{Task: "worker-0", Name: strconv.Itoa(i), Key: "k", Participants: []string{"worker-0"}}, func(o outcome) {
			assert.NotNil(t, o.released)
		})
	}
	assert.LessOrEqual(t, len(r.counts), maxNames)
	assert.Empty(t, r.open)
}

// Tasks get the same kinds of errors as at local barriers.
func TestStandingAcrossHosts(t *testing.T) {
	opened := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	a := barriers.Arrival{Name: "epoch", Task: "worker-0", Participants: []string{"worker-0", "worker-1", "worker-2", "worker-10"}}
	broken := barriers.Error{Code: wire.CodeBarrierTimeout, Message: "nobody came", Round: 2, Missing: []spec.BarrierMissing{
		{Task: "worker-1", Since: opened.Add(time.Hour)}, {Task: "worker-10", Since: opened},
	}}
	s := standing(&broken, a, time.Now().Add(-time.Minute))
	// The wait does not depend on the server's clock.
	assert.InDelta(t, 60, s.Waited, 30)
	s.Waited = 0
	assert.Equal(t, &wire.Standing{
		Name: "epoch", Round: 3, Arrived: []string{"worker-0", "worker-2"}, Missing: []string{"worker-1", "worker-10"},
		Since: "2026-01-02T03:04:05Z",
	}, s)

	broken.Missing = nil
	assert.Nil(t, standing(&broken, a, time.Now()), "nobody knows who was missing")
}
