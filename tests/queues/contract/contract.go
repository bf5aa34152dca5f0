// Package contract tests what programs rely on in a queue of closures. One script runs against
// the queue of package queues and against the real queue, so that results of client tests with
// the former hold for the latter.
package contract

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/tasks/closurequeue"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Queue is an open queue with functions that act on it from outside. Its tasks call at least
// two closures at a time. They have the functions square(i), fail(text), counter(start), which
// makes a counter for count(counter), and hold(name), which runs until Release(name).
type Queue struct {
	Server client.Client
	Run    spec.RunRef
	// Open returns another client of the queue.
	Open func() *closurequeue.Queue
	// Release lets the calls of hold(name) return.
	Release func(name string)
	// ContinueAsNew continues the queue in another execution. It may need a client to do so.
	ContinueAsNew func(*closurequeue.Queue)
	// End ends its run.
	End func()
}

// script is a run of the script.
type script struct {
	Queue
	*testing.T
	client *closurequeue.Client
	q      *closurequeue.Queue
	ctx    context.Context
	// ended holds the expected outcomes by ID: a value, or an error.
	ended map[uint64]string
}

// Check runs the script.
func Check(t *testing.T, q Queue) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	s := &script{Queue: q, T: t, ctx: ctx, ended: map[uint64]string{}, client: closurequeue.NewClient(q.Server, q.Run), q: q.Open()}
	t.Cleanup(s.q.Close)
	start := must.Get(s.client.Here(ctx))(t)
	for _, part := range []struct {
		name string
		run  func(*script)
	}{
		{"values", values}, {"refusals", refusals}, {"errors", failures}, {"cancelling", cancelling},
		{"resources", resources}, {"another execution", anotherExecution}, {"the end of the run", theEnd},
	} {
		if !t.Run(part.name, func(t *testing.T) {
			own := *s
			own.T = t
			part.run(&own)
		}) {
			return // the next steps would wait
		}
	}
	t.Run("following", func(t *testing.T) {
		own := *s
		own.T = t
		following(&own, start)
	})
}

func of(function string, args ...any) closure.Closure {
	b, err := json.Marshal(append([]any{}, args...))
	if err != nil {
		panic(err)
	}
	return closure.Closure{Function: function, Args: b}
}

func (s *script) schedule(c closure.Closure) (*closurequeue.Remote, uint64) {
	s.Helper()
	r := must.Get(s.q.Schedule(s.ctx, c))(s)
	id := must.Get(r.ID(s.ctx))(s)
	return r, id
}

// value waits for the value of a closure.
func (s *script) value(want string, r *closurequeue.Remote) {
	s.Helper()
	v := must.Get(r.Wait(s.ctx))(s)
	assert.JSONEq(s, want, string(v))
	id := must.Get(r.ID(s.ctx))(s)
	s.ended[id] = want
}

// failed waits for the error of a closure.
func (s *script) failed(kind, message string, r *closurequeue.Remote) {
	s.Helper()
	_, err := r.Wait(s.ctx)
	e := s.asError(err)
	if kind != "" { // the message of an error in the function depends on its language
		assert.Equal(s, kind, e.Kind)
	}
	assert.Contains(s, e.Message, message)
	id := must.Get(r.ID(s.ctx))(s)
	s.ended[id] = message
}

func (s *script) asError(err error) *closure.Error {
	s.Helper()
	var e *closure.Error
	require.ErrorAs(s, err, &e)
	return e
}

// awaits waits until the queue stands as it has to.
func (s *script) awaits(what string, stands func(closure.QueueStatus) bool) {
	s.Helper()
	require.Eventually(s, func() bool {
		status, err := s.q.Status(s.ctx)
		return err == nil && stands(status)
	}, time.Minute, 10*time.Millisecond, what)
}

func values(s *script) {
	before := must.Get(s.q.Status(s.ctx))(s)
	assert.Equal(s, closure.QueueCounts{}, before.Counts)
	require.NoError(s, s.q.Join(s.ctx), "nothing was scheduled")
	for i := range 20 {
		r, id := s.schedule(of("square", i))
		assert.Equal(s, uint64(i)+1, id, "in the order in which they were scheduled")
		square := must.Get(json.Marshal(i * i))(s)
		s.value(string(square), r)
	}
	require.NoError(s, s.q.Join(s.ctx))
	done := must.Get(s.q.Done(s.ctx))(s)
	assert.True(s, done)
	after := must.Get(s.q.Status(s.ctx))(s)
	assert.EqualValues(s, 20, after.Counts.Scheduled)
	assert.EqualValues(s, 20, after.Counts.Finished)
}

// refusals expects that a refused closure has no ID and does not fail the queue.
func refusals(s *script) {
	for want, c := range map[string]closure.Closure{
		`no task has registered a function "nothing"`: of("nothing"),
		"no resource 77": {Function: "square", Args: []byte(`[{"` + closure.ResourceKey + `": 77}]`), Resources: []uint64{77}},
	} {
		r, err := s.q.Schedule(s.ctx, c)
		if err == nil {
			_, err = r.ID(s.ctx)
			_, _ = s.q.Done(s.ctx)
		}
		var refused *closure.RefusedError
		require.ErrorAs(s, err, &refused)
		require.ErrorContains(s, err, want)
	}
	_, err := s.q.Fetch(s.ctx, 1_000_000)
	require.ErrorContains(s, err, "no closure 1000000; only 20 were scheduled")
	require.NoError(s, s.q.Join(s.ctx))
}

// failures expects that an error cancels all other closures, and is reported once.
func failures(s *script) {
	holds, _ := s.schedule(of("hold", "never"))
	s.awaits("it is being called", func(q closure.QueueStatus) bool { return q.Counts.Executing == 1 })
	fails, _ := s.schedule(of("fail", "on purpose"))
	s.failed("", "on purpose", fails)
	assert.Equal(s, "on purpose", s.asError(s.q.Join(s.ctx)).Message)
	s.failed(closure.ErrCancelled, closure.TextCancelled, holds)
	require.NoError(s, s.q.Join(s.ctx), "Join has returned it")
	alone, _ := s.schedule(closure.Closure{Function: "fail", Args: []byte(`["alone"]`), Task: "worker-0"})
	s.failed("", "alone", alone)
	require.NoError(s, s.q.Join(s.ctx), "the error of a closure for a certain task is its own")
}

func cancelling(s *script) {
	holds, id := s.schedule(of("hold", "cancelled"))
	s.awaits("it is being called", func(q closure.QueueStatus) bool { return q.Counts.Executing == 1 })
	a := must.Get(s.q.Cancel(s.ctx, id))(s)
	assert.Equal(s, 1, a.Cancelled+a.Told)
	s.failed(closure.ErrCancelled, closure.TextCancelled, holds)
	// The history shows an outcome before the workflow has applied it.
	s.awaits("the queue has its outcome", func(q closure.QueueStatus) bool { return q.Counts.Executing == 0 })
	a = must.Get(s.q.Cancel(s.ctx, id, 1))(s)
	assert.Zero(s, a.Cancelled+a.Told, "they have ended")
	require.NoError(s, s.q.Join(s.ctx))
}

// resources expects that a resource is made once in each task that uses it, and stays until no
// closure needs it.
func resources(s *script) {
	id := must.Get(s.q.CreateResource(s.ctx, closure.Resource{Function: "counter", Args: []byte("[10]")}))(s)
	text := must.Get(json.Marshal([]any{map[string]uint64{closure.ResourceKey: id}}))(s)
	counted := map[string]int{}
	for range 5 {
		r, _ := s.schedule(closure.Closure{Function: "count", Args: text, Resources: []uint64{id}})
		v := must.Get(r.Wait(s.ctx))(s)
		var task string
		var n int
		require.NoError(s, json.Unmarshal(v, &[]any{&task, &n}))
		counted[task]++
		assert.Equal(s, 10+counted[task], n, "each task has one")
	}
	s.q.Release(id)
	s.awaits("the resource is gone", func(q closure.QueueStatus) bool { return q.Counts.Resource == 0 })
}

// anotherExecution expects that a queue keeps its state in another execution, and that any
// client finds values of earlier executions.
func anotherExecution(s *script) {
	holds, id := s.schedule(of("hold", "long"))
	s.awaits("it is being called", func(q closure.QueueStatus) bool { return q.Counts.Executing == 1 })
	before := must.Get(s.q.Status(s.ctx))(s)
	s.ContinueAsNew(s.q)
	after := must.Get(s.q.Status(s.ctx))(s)
	require.Greater(s, len(after.Executions), len(before.Executions))
	found := must.Get(s.client.Find(s.ctx, id))(s)
	assert.Empty(s, found, "it continues")
	s.Release("long")
	s.value(`"long"`, holds)
	s.found()
}

// found checks the outcomes that another client finds.
func (s *script) found() {
	s.Helper()
	var ids []uint64
	for id := range s.ended {
		ids = append(ids, id)
	}
	found := must.Get(s.client.Find(s.ctx, ids...))(s)
	for id, want := range s.ended {
		s.outcome(want, found[id])
	}
	q := s.Open()
	defer q.Close()
	r := must.Get(q.Fetch(s.ctx, 4))(s)
	s.value("9", r)
}

func (s *script) outcome(want string, o closure.Outcome) {
	s.Helper()
	switch {
	case o.Error != nil:
		assert.Contains(s, o.Error.Message, want, o.ID)
	case o.Kind == closure.OutcomeCancelled:
		assert.Equal(s, closure.TextCancelled, want, o.ID)
	default:
		assert.JSONEq(s, want, string(o.Value), o.ID)
	}
}

// After the end of the run the queue takes no closures, and all outcomes are known.
func theEnd(s *script) {
	holds, id := s.schedule(of("hold", "for ever"))
	s.End()
	_, err := holds.Wait(s.ctx)
	s.ended[id] = s.asError(err).Message
	s.awaits("it has ended", func(q closure.QueueStatus) bool { return q.State == closure.QueueEnded })
	_, err = s.client.Schedule(s.ctx, closure.ScheduleRequest{Client: "late", Batch: 1, Closures: []closure.Closure{of("square", 1)}})
	require.ErrorIs(s, err, closurequeue.ErrRunEnded)
	status := must.Get(s.q.Status(s.ctx))(s)
	c := status.Counts
	assert.Equal(s, c.Scheduled, c.Finished+c.Failed+c.Cancelled)
	s.found()
}

// following expects that a client that follows the history from a position before the first
// closure receives all outcomes. The first one received for a closure counts.
func following(s *script, from closurequeue.Position) {
	again := must.Get(closurequeue.ParsePosition(from.String()))(s)
	require.Equal(s, from, again)
	all := map[uint64]bool{}
	for id := range s.ended {
		all[id] = true
	}
	told := map[uint64]closure.Outcome{}
	var places []string
	err := s.client.Follow(s.ctx, from, func(n closure.Outcomes) error {
		places = append(places, n.At)
		n.Each(all, func(o closure.Outcome) {
			if _, before := told[o.ID]; !before {
				told[o.ID] = o
			}
		})
		return nil
	})
	require.ErrorIs(s, err, closurequeue.ErrRunEnded)
	for id, want := range s.ended {
		if assert.Contains(s, told, id) {
			s.outcome(want, told[id])
		}
	}
	// From a position in the middle, Follow continues with the next one.
	middle := len(places) / 2
	var rest []string
	at := must.Get(closurequeue.ParsePosition(places[middle]))(s)
	err = s.client.Follow(s.ctx, at, func(n closure.Outcomes) error {
		rest = append(rest, n.At)
		return nil
	})
	require.ErrorIs(s, err, closurequeue.ErrRunEnded)
	assert.Equal(s, places[middle+1:], rest)
}
