package barriers_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/barrier"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

var run = spec.RunRef{WorkflowID: "iris", RunID: "0123abcd-0"}

func newHost(t *testing.T, s barriers.Server, state string) *barriers.Barriers {
	t.Helper()
	b := barriers.New(barriers.Config{Server: s, Host: "host", Queue: "q", StateDir: state, Log: zap.NewNop()})
	t.Cleanup(b.Close)
	return b
}

type outcome struct {
	barriers.Release
	err error
}

func arrive(ctx context.Context, b *barriers.Barriers, a barriers.Arrival) chan outcome {
	done := make(chan outcome, 1)
	go func() {
		r, err := b.Arrive(ctx, a)
		done <- outcome{r, err}
	}()
	return done
}

func await(t *testing.T, done chan outcome) outcome {
	t.Helper()
	select {
	case o := <-done:
		return o
	case <-time.After(time.Minute):
		t.Fatal("no answer")
		return outcome{}
	}
}

func released(t *testing.T, done chan outcome, round int) {
	t.Helper()
	o := await(t, done)
	require.NoError(t, o.err)
	require.Equal(t, round, o.Round)
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, time.Minute, time.Millisecond)
}

func arrival(task, name, key string, participants ...string) barriers.Arrival {
	return barriers.Arrival{Run: run, Task: task, Name: name, Key: key, Participants: participants}
}

// All hosts get the tasks' values, even a host with a host worker that restarted before it
// received the answer. A value that is too large is refused, and does not affect the round.
func TestValuesAcrossHosts(t *testing.T) {
	s := newFakeServer()
	a, b := newHost(t, s, t.TempDir()), newHost(t, s, t.TempDir())
	zero, one := arrival("worker-0", "x", "k0", "worker-0", "worker-1"), arrival("worker-1", "x", "k1", "worker-0", "worker-1")
	zero.Here, one.Here = []string{"worker-0"}, []string{"worker-1"}
	zero.Value = strings.Repeat("x", spec.MaxBarrierValues)
	first := arrive(t.Context(), a, zero)
	eventually(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return len(s.told) == 1 })
	one.Value = "1"
	var large *barriers.Error
	require.ErrorAs(t, await(t, arrive(t.Context(), b, one)).err, &large)
	require.EqualError(t, large, "barrier x: the values of all tasks exceed 1048576 bytes in total; pass less data, such as a file's path")
	one.Key, one.Value = "k2", ""
	for _, o := range []outcome{await(t, arrive(t.Context(), b, one)), await(t, first), await(t, arrive(t.Context(), newHost(t, s, t.TempDir()), one))} {
		require.NoError(t, o.err)
		require.Equal(t, map[string]string{"worker-0": zero.Value}, o.Values)
	}
}

// A host's tasks that arrive together are sent in one message, and the last of them does not wait
// for an expired moment.
func TestArrivalsAreOneMessage(t *testing.T) {
	s := newFakeServer()
	b := newHost(t, s, t.TempDir())
	var tasks []string
	for i := range 100 {
		tasks = append(tasks, fmt.Sprint("worker-", i))
	}
	for round := range 3 {
		var waits []chan outcome
		for _, task := range tasks {
			a := arrival(task, "epoch", fmt.Sprint(round), tasks...)
			a.Here = tasks
			waits = append(waits, arrive(t.Context(), b, a))
		}
		for _, w := range waits {
			released(t, w, round)
		}
	}
	require.LessOrEqual(t, s.messages(), 3*4, "messages for 300 arrivals")
	require.LessOrEqual(t, s.asked("result"), 3+1, "waits for the result")
}

func TestArrivalIsTakenBack(t *testing.T) {
	s := newFakeServer()
	b := newHost(t, s, t.TempDir())
	id := spec.BarrierID(run, "epoch", 0)
	ctx, cancel := context.WithCancel(t.Context())
	first := arrive(ctx, b, arrival("worker-0", "epoch", "a", "worker-0", "worker-1"))
	eventually(t, func() bool { return len(s.waiting(id)) == 1 })
	// The process retried before the host noticed that its connection had broken.
	again := arrive(t.Context(), b, arrival("worker-0", "epoch", "a", "worker-0", "worker-1"))
	other := arrive(ctx, b, arrival("worker-1", "another", "a", "worker-0", "worker-1"))
	eventually(t, func() bool { return len(s.waiting(spec.BarrierID(run, "another", 0))) == 1 })
	cancel()
	require.ErrorIs(t, await(t, first).err, context.Canceled)
	require.ErrorIs(t, await(t, other).err, context.Canceled)
	eventually(t, func() bool { return len(s.waiting(spec.BarrierID(run, "another", 0))) == 0 })
	require.Equal(t, []string{"worker-0"}, s.waiting(id), "somebody waits behind the same key")
	released(t, arrive(t.Context(), b, arrival("worker-1", "epoch", "b", "worker-0", "worker-1")), 0)
	released(t, again, 0)
}

func TestArrivalsThatCannotBe(t *testing.T) {
	b := newHost(t, newFakeServer(), t.TempDir())
	for want, a := range map[string]barriers.Arrival{
		"the name is empty":                 arrival("worker-0", "", "k", "worker-0"),
		"cannot be printed":                 arrival("worker-0", "a\nb", "k", "worker-0"),
		"has no key":                        arrival("worker-0", "epoch", "", "worker-0"),
		"worker-0 is not among its":         arrival("worker-0", "epoch", "k", "worker-1", "worker-2"),
		"the timeout is -1s; use a positiv": {Run: run, Task: "worker-0", Name: "epoch", Key: "k", Participants: []string{"worker-0"}, Timeout: -time.Second},
	} {
		_, err := b.Arrive(t.Context(), a)
		require.ErrorContains(t, err, want)
	}
}

// A final refusal is returned instead of being retried forever.
func TestServerRefuses(t *testing.T) {
	s := newFakeServer()
	s.refuse = errors.New("too large")
	_, err := newHost(t, s, t.TempDir()).Arrive(t.Context(), arrival("worker-0", "epoch", "k", "worker-0"))
	var refused *barriers.RefusedError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "too large")
}

// A timeout starts at the arrival, even if the server was away at first.
func TestTimeoutDuringAnOutage(t *testing.T) {
	s := newFakeServer()
	s.fault = 100
	b := newHost(t, s, t.TempDir())
	a := arrival("worker-0", "epoch", "k", "worker-0", "worker-1")
	a.Timeout = time.Hour
	came := time.Now()
	w := arrive(t.Context(), b, a)
	eventually(t, func() bool { return time.Since(came) > 1100*time.Millisecond && s.asked("tell") > 2 })
	s.mu.Lock()
	s.fault = 0
	s.mu.Unlock()
	eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.told) == 0 {
			return false
		}
		left := s.told[len(s.told)-1].Arrived[0].Timeout
		return left <= time.Hour-time.Second && left > time.Hour-2*time.Minute
	})
	released(t, arrive(t.Context(), b, arrival("worker-1", "epoch", "k", "worker-0", "worker-1")), 0)
	released(t, w, 0)
}

// A task that arrives too often gets an error, and the round continues without its last arrival.
func TestTooManyArrivals(t *testing.T) {
	b := newHost(t, newFakeServer(), t.TempDir())
	two := []string{"worker-0", "worker-1"}
	all := map[string]chan outcome{}
	for i := range 65 {
		key := fmt.Sprint("k", i)
		all[key] = arrive(t.Context(), b, arrival("worker-0", "epoch", key, two...))
	}
	var refused string
	eventually(t, func() bool {
		for key, w := range all {
			if len(w) > 0 {
				refused = key
			}
		}
		return refused != ""
	})
	var tooMany *barriers.Error
	require.ErrorAs(t, await(t, all[refused]).err, &tooMany)
	require.EqualError(t, tooMany, "barrier epoch: worker-0 is waiting at it too many times; let only one thread wait")
	delete(all, refused)
	released(t, arrive(t.Context(), b, arrival("worker-1", "epoch", "k", two...)), 0)
	for _, w := range all {
		released(t, w, 0)
	}
	released(t, arrive(t.Context(), b, arrival("worker-1", "epoch", "k", two...)), 0)
}

// A broken round is also an answer, even to a repeated arrival.
func TestBrokenIsRemembered(t *testing.T) {
	s := newFakeServer()
	state := t.TempDir()
	b := newHost(t, s, state)
	id := spec.BarrierID(run, "epoch", 0)
	w := arrive(t.Context(), b, arrival("worker-0", "epoch", "k", "worker-0", "worker-1"))
	eventually(t, func() bool { return len(s.waiting(id)) == 1 })
	s.step(id, barrier.Ended{Task: "worker-1", How: "exit code 3"})
	for range 2 {
		var broken *barriers.Error
		o := await(t, w)
		require.ErrorAs(t, o.err, &broken)
		require.Equal(t, "worker-1", broken.Missing[0].Task)
		w = arrive(t.Context(), b, arrival("worker-0", "epoch", "k", "worker-0", "worker-1"))
	}
	b.Close()
	require.ErrorContains(t, await(t, arrive(t.Context(), newHost(t, s, state), arrival("worker-0", "epoch", "k", "worker-0", "worker-1"))).err, "worker-1 ended (exit code 3)")
}

// The search for an arrival skips rounds that broke while this host was away.
func TestLooksBehindBrokenRounds(t *testing.T) {
	s := newFakeServer()
	state := t.TempDir()
	b := newHost(t, s, state)
	two := []string{"worker-0", "worker-1"}
	first := arrive(t.Context(), b, arrival("worker-0", "epoch", "a", two...))
	released(t, arrive(t.Context(), b, arrival("worker-1", "epoch", "b", two...)), 0)
	released(t, first, 0)
	for round := 1; round < 5; round++ {
		w := arrive(t.Context(), b, arrival("worker-1", "epoch", fmt.Sprint("b", round), two...))
		id := spec.BarrierID(run, "epoch", round)
		eventually(t, func() bool { return len(s.waiting(id)) == 1 })
		s.step(id, barrier.Cancelled{})
		require.Error(t, await(t, w).err)
	}
	b.Close()
	b = newHost(t, s, state)
	released(t, arrive(t.Context(), b, arrival("worker-0", "epoch", "a", two...)), 0)
	other := arrive(t.Context(), b, arrival("worker-0", "epoch", "a5", two...))
	released(t, arrive(t.Context(), b, arrival("worker-1", "epoch", "b5", two...)), 5)
	released(t, other, 5)
}

// A host that has lost its number skips the closed rounds.
func TestForgottenNumberIsFound(t *testing.T) {
	const rounds = 100
	s := newFakeServer()
	state := t.TempDir()
	b := newHost(t, s, state)
	for round := range rounds {
		r := must.Get(b.Arrive(t.Context(), arrival("worker-0", "epoch", fmt.Sprint(round), "worker-0")))(t)
		require.Equal(t, round, r.Round)
	}
	b.Close()
	require.NoError(t, os.RemoveAll(filepath.Join(state, "barriers")))
	b = newHost(t, s, state)
	released(t, arrive(t.Context(), b, arrival("worker-0", "epoch", fmt.Sprint(rounds-1), "worker-0")), rounds-1)
	released(t, arrive(t.Context(), b, arrival("worker-0", "epoch", "new", "worker-0")), rounds)
}

// An arrival that the server has lost is resent.
func TestLostArrivalIsToldAgain(t *testing.T) {
	s := newFakeServer()
	b := newHost(t, s, t.TempDir())
	id := spec.BarrierID(run, "epoch", 0)
	w := arrive(t.Context(), b, arrival("worker-0", "epoch", "a", "worker-0", "worker-1"))
	eventually(t, func() bool { return len(s.waiting(id)) == 1 })
	s.step(id, barrier.Withdrawn{Task: "worker-0", Key: "a"})
	eventually(t, func() bool { return len(s.waiting(id)) == 1 })
	released(t, arrive(t.Context(), b, arrival("worker-1", "epoch", "b", "worker-0", "worker-1")), 0)
	released(t, w, 0)
}

// A released run does not leave open rounds, files or memory.
func TestForget(t *testing.T) {
	s := newFakeServer()
	state := t.TempDir()
	b := newHost(t, s, state)
	_, err := b.Arrive(t.Context(), arrival("worker-0", "passed", "k", "worker-0"))
	require.NoError(t, err)
	w := arrive(t.Context(), b, arrival("worker-0", "open", "k", "worker-0", "worker-1"))
	id := spec.BarrierID(run, "open", 0)
	eventually(t, func() bool { return len(s.waiting(id)) == 1 })
	eventually(t, func() bool { return len(files(t, state)) == 1 })
	require.NoError(t, b.Forget(t.Context(), run.WorkflowID, run.RunID))
	require.Error(t, await(t, w).err)
	require.Equal(t, []string{id}, s.ended)
	b.Close()
	require.Empty(t, files(t, state))
}

// A restarted group has its own barriers, and late arrivals of the earlier generation are refused.
func TestGenerations(t *testing.T) {
	s := newFakeServer()
	b := newHost(t, s, t.TempDir())
	for generation := range 2 {
		for round := range 2 {
			a := arrival("worker-0", "epoch", fmt.Sprint(round), "worker-0")
			a.Run.Generation = generation
			released(t, arrive(t.Context(), b, a), round)
		}
	}
	var broken *barriers.Error
	_, err := b.Arrive(t.Context(), arrival("worker-0", "epoch", "late", "worker-0"))
	require.ErrorAs(t, err, &broken)
	require.Equal(t, wire.CodeBarrierBroken, broken.Code)
}

func files(t *testing.T, state string) []string {
	t.Helper()
	list := must.Get(filepath.Glob(filepath.Join(state, "barriers", "*")))(t)
	return list
}

// 10,000 barriers with different names do not grow memory or files.
func TestManyBarriersAreForgotten(t *testing.T) {
	s := &forgetfulServer{newFakeServer()}
	state := t.TempDir()
	b := newHost(t, s, state)
	var before int
	var memory uint64
	for i := range 10_000 {
		_, err := b.Arrive(t.Context(), arrival("worker-0", fmt.Sprint("step-", i), "k", "worker-0"))
		require.NoError(t, err)
		if i == 2_000 {
			before, memory = runtime.NumGoroutine(), heap()
		}
	}
	eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 })
	require.Less(t, float64(heap())-float64(memory), float64(1<<20))
	b.Close()
	require.LessOrEqual(t, len(must.Get(os.ReadDir(files(t, state)[0]))(t)), 1024)
}

// forgetfulServer drops closed rounds, so that its memory does not grow.
type forgetfulServer struct{ *fakeServer }

func (s *forgetfulServer) Result(ctx context.Context, id string) (spec.BarrierResult, error) {
	r, err := s.fakeServer.Result(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rounds, id)
	s.told = nil
	return r, err
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Everything fails together. Calls and answers are lost, hosts are killed at any moment and return
// with or without their memory, and tasks retry with the same key. Every task passes every round
// exactly once, in order.
func TestEveryRoundOnceWhateverHappens(t *testing.T) {
	const hosts, tasksPerHost, rounds = 3, 2, 30
	s := newFakeServer()
	s.fault = 15
	w := &world{t: t, server: s}
	var tasks []string
	for h := range hosts {
		w.states = append(w.states, t.TempDir())
		w.hosts = append(w.hosts, newHost(t, s, w.states[h]))
		for i := range tasksPerHost {
			tasks = append(tasks, fmt.Sprintf("worker-%d", h*tasksPerHost+i))
		}
	}
	stop := make(chan struct{})
	var killer, all sync.WaitGroup
	killer.Go(func() { w.killHosts(stop) })
	for i, task := range tasks {
		all.Go(func() {
			for round := range rounds {
				w.pass(i/tasksPerHost, arrival(task, "epoch", fmt.Sprint(task, round), tasks...), round)
			}
		})
	}
	all.Wait()
	close(stop)
	killer.Wait()
	require.Greater(t, w.kills, 5)
}

type world struct {
	t      *testing.T
	server *fakeServer
	mu     sync.Mutex
	hosts  []*barriers.Barriers
	states []string
	kills  int
}

func (w *world) host(i int) *barriers.Barriers {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.hosts[i]
}

func (w *world) pass(host int, a barriers.Arrival, round int) {
	for {
		r, err := w.host(host).Arrive(w.t.Context(), a)
		if errors.Is(err, barriers.ErrShutdown) {
			runtime.Gosched()
			continue
		}
		if err != nil || r.Round != round {
			w.t.Errorf("%s: %v, %v instead of round %d", a.Task, r, err, round)
		}
		return
	}
}

func (w *world) killHosts(stop chan struct{}) {
	random := rand.New(rand.NewPCG(3, 4))
	for {
		select {
		case <-stop:
			return
		case <-time.After(time.Duration(random.IntN(100)) * time.Millisecond):
		}
		i := random.IntN(len(w.hosts))
		w.host(i).Close()
		if random.IntN(3) == 0 {
			_ = os.RemoveAll(filepath.Join(w.states[i], "barriers"))
		}
		b := barriers.New(barriers.Config{Server: w.server, Host: fmt.Sprint(i), Queue: "q", StateDir: w.states[i], Log: zap.NewNop()})
		w.t.Cleanup(b.Close)
		w.mu.Lock()
		w.hosts[i] = b
		w.kills++
		w.mu.Unlock()
	}
}
