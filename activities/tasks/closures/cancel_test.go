package closures

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/tasks/taskapi"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

func (h *host) restarts() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.restarted
}

func wasCancelled(id uint64, task string) closure.Outcome {
	return closure.Outcome{ID: id, Kind: closure.OutcomeCancelled, Task: task, Error: &closure.Error{
		Kind: closure.ErrCancelled, Message: closure.TextCancelled, Closure: id, Task: task,
	}}
}

// SEED-43
func TestCancelEndsWhatWaitsAtOnce(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		l := h.lease(closuresFrom(1, 2)...)
		h.Cancel(closure.CancelLease{Closures: []uint64{2, 9}, Grace: time.Second})
		assert.Equal(t, []closure.Outcome{wasCancelled(2, "")}, l.get(t).Outcomes)
		l = h.lease(closuresFrom(1, 1)...)
		assert.Equal(t, []uint64{1}, h.process("worker-0", "a", 1).take(1, 0))
		assert.True(t, l.waits())
	})
}

func TestCancelTellsTheProcess(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 2)
		l := h.lease(closuresFrom(1, 2)...)
		require.Equal(t, []uint64{1, 2}, p.take(2, 0))
		listening := p.waiting(0)
		h.Cancel(closure.CancelLease{Closures: []uint64{1, 2}, Grace: time.Second})
		a := <-listening
		assert.Equal(t, []taskapi.CallCancel{{ID: 1}, {ID: 2}}, a.Cancel)
		p.read(a)
		// Once the process has acknowledged the cancellation, it is not sent again.
		listening = p.waiting(0)
		synctest.Wait()
		assert.Empty(t, listening)
		p.done(taskapi.CallOutcome{ID: 1, Kind: "cancelled"}, value(2))
		// The first end of a closure counts.
		assert.Equal(t, []closure.Outcome{wasCancelled(1, "worker-0"), valued(2, "worker-0")}, l.get(t).Outcomes)
		time.Sleep(time.Minute)
		assert.Empty(t, h.restarts())
	})
}

// An answer with a cancellation may be lost like any other.
func TestACancellationIsToldUntilItIsHeard(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		l := h.lease(newClosure(1))
		require.Equal(t, []uint64{1}, p.take(1, 0))
		h.Cancel(closure.CancelLease{Closures: []uint64{1}, Grace: time.Hour})
		for range 3 {
			assert.Len(t, p.send(p.request()).Cancel, 1, "lost")
		}
		a := p.send(p.request())
		p.read(a)
		assert.Empty(t, p.send(p.request()).Cancel)
		// A process that asks and waits in vain gets the cancellation again each time.
		in := p.request()
		in.Wait = 1
		assert.Len(t, p.send(in).Cancel, 1)
		p.done(taskapi.CallOutcome{ID: 1, Kind: "cancelled"})
		assert.Equal(t, closure.OutcomeCancelled, one(t, l.get(t)).Kind)
	})
}

// If a call does not end, its process is restarted, and the call is cancelled then.
func TestAProcessThatDoesNotEndACallIsRestarted(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 2)
		l := h.lease(closuresFrom(1, 2)...)
		require.Equal(t, []uint64{1, 2}, p.take(2, 0))
		p.take(0, 0) // the process has begun them
		h.Cancel(closure.CancelLease{Closures: []uint64{1}, Grace: 3 * time.Second})
		h.Cancel(closure.CancelLease{Closures: []uint64{1}, Grace: time.Hour})
		time.Sleep(3*time.Second - time.Nanosecond)
		assert.Empty(t, h.restarts())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Equal(t, []string{"worker-0"}, h.restarts())
		assert.True(t, l.waits(), "the call goes on")
		time.Sleep(restartAgain)
		synctest.Wait()
		assert.Len(t, h.restarts(), 2)
		h.ProcessEnded("worker-0", "")
		r := l.get(t)
		assert.Equal(t, wasCancelled(1, "worker-0"), r.Outcomes[0])
		assert.Equal(t, closure.OutcomeLost, r.Outcomes[1].Kind)
		time.Sleep(time.Hour)
		assert.Len(t, h.restarts(), 2)
	})
}

func TestErrorsAreThoseOfTheirClosures(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 2)
		l := h.lease(closuresFrom(1, 2)...)
		require.Len(t, p.take(2, 0), 2)
		p.done(failed(1, "ValueError", "no"), taskapi.CallOutcome{ID: 2, Kind: "unavailable", Error: &closure.Error{Message: "gone", Task: "ps-0"}})
		r := l.get(t)
		assert.Equal(t, closure.Outcome{ID: 1, Kind: closure.OutcomeError, Task: "worker-0",
			Error: &closure.Error{Kind: "ValueError", Message: "no", Task: "worker-0", Closure: 1}}, r.Outcomes[0])
		assert.Equal(t, closure.Outcome{ID: 2, Kind: closure.OutcomeUnavailable, Task: "worker-0",
			Error: &closure.Error{Message: "gone", Task: "ps-0", Closure: 2}}, r.Outcomes[1])
	})
}

func TestTimeout(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 4)
		options := closure.Options{Timeout: closure.TimeoutOf(time.Minute)}
		l := h.lease(with(newClosure(1), options), with(newClosure(2), options), with(newClosure(3), options), with(newClosure(4), options))
		require.Len(t, p.take(4, 0), 4)
		p.take(0, 0) // the process has begun them
		time.Sleep(59 * time.Second)
		p.done(value(4))
		require.Equal(t, []uint64{4}, ids(l.get(t).Outcomes))
		l = h.lease(closure.Closure{ID: 1}, closure.Closure{ID: 2}, closure.Closure{ID: 3})
		listening := p.waiting(0)
		time.Sleep(time.Second)
		synctest.Wait()
		p.read(<-listening)
		a := p.send(p.request())
		p.read(a)
		assert.Equal(t, []taskapi.CallCancel{{ID: 1, Timeout: true}, {ID: 2, Timeout: true}, {ID: 3, Timeout: true}}, a.Cancel)
		stopped := taskapi.CallOutcome{Kind: "error", Error: &closure.Error{Kind: "KeyboardInterrupt", Traceback: "here"}}
		first, last := stopped, stopped
		first.ID, last.ID = 1, 2
		p.done(first, last, value(3))
		r := l.get(t)
		require.Len(t, r.Outcomes, 3)
		assert.Equal(t, valued(3, "worker-0"), r.Outcomes[2], "what was late counts all the same")
		assert.Equal(t, closure.Outcome{ID: 2, Kind: closure.OutcomeError, Task: "worker-0", Error: &closure.Error{
			Kind: closure.ErrTimeout, Message: "the function f has not ended within its timeout of 1m", Traceback: "here",
			Closure: 2, Task: "worker-0",
		}}, r.Outcomes[1])
		time.Sleep(time.Hour)
		assert.Empty(t, h.restarts())
	})
}

func TestAProcessThatIsStuckIsRestartedAfterTheTimeout(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		l := h.lease(with(newClosure(1), closure.Options{Timeout: closure.TimeoutOf(time.Second)}))
		require.Len(t, p.take(1, 0), 1)
		time.Sleep(time.Second + timeoutGrace)
		synctest.Wait()
		assert.Equal(t, []string{"worker-0"}, h.restarts())
		h.ProcessEnded("worker-0", "a")
		o := one(t, l.get(t))
		assert.Equal(t, closure.OutcomeError, o.Kind)
		assert.Equal(t, closure.ErrTimeout, o.Error.Kind)
	})
}

// A timeout belongs to the call: it does not run while a closure waits, and a closure with a
// timeout never waits behind another in its process.
func TestATimeoutBeginsWithTheCall(t *testing.T) {
	run(t, func(t *testing.T, h *host) {
		p := h.process("worker-0", "a", 1)
		l := h.lease(newClosure(1))
		require.Equal(t, []uint64{1}, p.take(1, 0))
		p.done(quick(1))
		l.get(t)
		here := closure.Options{Task: "worker-0"} // so that it waits at this broker
		short := here
		short.Timeout = closure.TimeoutOf(time.Second)
		l = h.lease(with(newClosure(2), here), with(newClosure(3), here), with(newClosure(4), short), with(newClosure(5), here))
		time.Sleep(time.Hour)
		require.Equal(t, []uint64{2, 3}, p.take(1, 0))
		p.done(quick(2), quick(3))
		require.Equal(t, []uint64{2, 3}, ids(l.get(t).Outcomes))
		require.Equal(t, []uint64{4}, p.take(1, 0))
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		assert.Empty(t, p.send(p.request()).Cancel)
		time.Sleep(time.Millisecond)
		synctest.Wait()
		assert.Len(t, p.send(p.request()).Cancel, 1)
	})
}

func TestTextsAreBounded(t *testing.T) {
	long := make([]byte, 100_000)
	for i := range long {
		long[i] = "é"[i%2]
	}
	o := judge(&entry{}, taskapi.CallOutcome{Kind: "error", Error: &closure.Error{Message: "a" + string(long), Traceback: string(long) + "z"}})
	assert.Len(t, o.Error.Message, closure.MaxError-1)
	assert.Equal(t, "aé", o.Error.Message[:3])
	assert.Len(t, o.Error.Traceback, closure.MaxTraceback-1)
	assert.Equal(t, "éz", o.Error.Traceback[len(o.Error.Traceback)-3:])

	large := judge(&entry{closure: closure.Closure{Function: "f"}}, taskapi.CallOutcome{Value: make([]byte, closure.MaxBytes+1)})
	assert.Equal(t, closure.ErrValueTooLarge, large.Error.Kind)
	assert.Empty(t, large.Value)
	// A value is measured by its size in the history.
	for _, sign := range []string{"<", ">", "&", "\u2028"} {
		fits := json.RawMessage(`"` + strings.Repeat(sign, closure.MaxBytes/6) + `"`)
		assert.LessOrEqual(t, len(judge(&entry{}, taskapi.CallOutcome{Value: fits}).Value), closure.MaxBytes)
		fits = json.RawMessage(`"` + strings.Repeat(sign, closure.MaxBytes/6+1) + `"`)
		large := judge(&entry{closure: closure.Closure{Function: "f"}}, taskapi.CallOutcome{Value: fits})
		require.NotNil(t, large.Error, sign)
		assert.Equal(t, closure.ErrValueTooLarge, large.Error.Kind)
		assert.Contains(t, large.Error.Message, "the value of f has 262148 bytes of JSON, in which <, > and & take six each")
	}
	assert.Equal(t, "CancelledError", judge(&entry{}, taskapi.CallOutcome{Kind: "cancelled", Error: &closure.Error{Kind: "CancelledError"}}).Error.Kind)
}
