package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// script is a queue with one client and its running batches.
type script struct {
	*Queue
	t *testing.T
	// running lists the running batches, the oldest first, and told the cancelled ones.
	running []*Batch
	told    map[int]bool
	// scheduled and taken count the closures and outcomes of each client.
	scheduled, taken map[string]uint64
	lone             bool // schedules wait for outcomes
}

func newScript(t *testing.T, size int) *script {
	t.Helper()
	s := &script{Queue: New(Config{Size: size, TransientUnavailable: 3}), t: t, told: map[int]bool{}, scheduled: map[string]uint64{}, taken: map[string]uint64{}}
	s.Now(time.Unix(1_000_000, 0))
	return s
}

// carryOut stands in for the workflow.
func (s *script) carryOut() {
	for _, a := range s.Actions() {
		if a.Cancel {
			s.told[a.Batch.Number] = true
			continue
		}
		require.False(s.t, slices.Contains(s.running, a.Batch), "batch %d runs already", a.Batch.Number)
		s.running = append(s.running, a.Batch)
	}
}

// serve makes single-slot tasks serve on a host.
func (s *script) serve(host string, tasks ...string) {
	m := closure.ServingMessage{Host: host, Queue: "queue of " + host, Seq: time.Now().UnixNano()}
	for _, task := range tasks {
		m.Serving = append(m.Serving, closure.ServingTask{Task: task, Slots: 1})
	}
	s.Serving(m)
	s.carryOut()
}

// schedule schedules n closures of a function.
func (s *script) schedule(function string, n int) *Call {
	return s.request(closure.SyncRequest{Client: "c", Wait: s.lone, Closures: calls(function, n)})
}

func calls(function string, n int) []closure.Closure {
	return slices.Repeat([]closure.Closure{{Function: function}}, n)
}

// request sends a request, with the numbers that its client counts.
func (s *script) request(r closure.SyncRequest) *Call {
	s.t.Helper()
	r.First, r.After = s.scheduled[r.Client]+1, s.taken[r.Client]
	s.scheduled[r.Client] += uint64(len(r.Closures))
	require.NoError(s.t, r.Validate())
	call := s.Sync(r)
	s.carryOut()
	return call
}

func (s *script) join() *Call {
	return s.request(closure.SyncRequest{Client: "c", Join: true, Wait: true})
}

func (s *script) poll() *Call { return s.request(closure.SyncRequest{Client: "c", Join: true}) }

// joins answers a join: with the end of everything, or the error.
func (s *script) joins() (answer string) {
	s.t.Helper()
	for {
		call := s.join()
		if !call.Ready() {
			return "waits"
		}
		a := done(s.t, call)
		s.taken["c"] += uint64(len(a.Outcomes))
		for _, o := range a.Outcomes {
			if o.Kind == closure.OutcomeRaised {
				return o.Error.Error()
			}
		}
		if a.Done {
			return "done"
		}
	}
}

// take returns the outcomes that a client has not taken, as strings.
func (s *script) take(client string) (all []string) {
	call := s.request(closure.SyncRequest{Client: client, Wait: true})
	if !call.Ready() {
		return nil
	}
	for _, o := range done(s.t, call).Outcomes {
		s.taken[client]++
		if e := o.Failure(); e != nil {
			all = append(all, fmt.Sprintf("%d %s", o.ID, e))
		} else {
			all = append(all, fmt.Sprintf("%d = %s", o.ID, o.Value))
		}
	}
	return all
}

// ends completes the oldest running batch.
func (s *script) ends(r closure.BatchResult) {
	s.t.Helper()
	require.NotEmpty(s.t, s.running)
	b := s.running[0]
	s.running = s.running[1:]
	s.BatchEnded(b.Number, r)
	s.carryOut()
}

// fails reports that the oldest running batch's host is lost.
func (s *script) fails() {
	s.t.Helper()
	b := s.running[0]
	s.running = s.running[1:]
	s.BatchFailed(b.Number)
	s.carryOut()
}

// returns completes the oldest batch with a value for each closure.
func (s *script) returns() {
	s.t.Helper()
	var r closure.BatchResult
	for _, it := range s.running[0].Items {
		r.Outcomes = append(r.Outcomes, value(it.ID))
	}
	s.ends(r)
}

// all returns values until nothing is running.
func (s *script) all() {
	for len(s.running) > 0 {
		s.returns()
	}
}

// ids returns the running batches' closures.
func (s *script) ids() (all [][]uint64) {
	for _, b := range s.running {
		var one []uint64
		for _, it := range b.Items {
			one = append(one, it.ID)
		}
		all = append(all, one)
	}
	return all
}

// continues moves the state to another execution of the workflow.
func (s *script) continues() {
	text := must.Get(json.Marshal(s.Carried()))(s.t)
	var state State
	require.NoError(s.t, json.Unmarshal(text, &state))
	s.Queue = Restore(s.config, state)
	s.Now(time.Unix(1_000_100, 0))
	s.running = nil
	s.carryOut()
}

func value(id uint64) closure.Outcome {
	return closure.Outcome{ID: id, Value: json.RawMessage(fmt.Sprint(id))}
}

func failure(id uint64, message string) closure.Outcome {
	return closure.Outcome{ID: id, Kind: closure.OutcomeError, Task: "worker-0", Error: &closure.Error{Kind: "ValueError", Message: message}}
}

func lost(id uint64) closure.Outcome {
	return closure.Outcome{ID: id, Kind: closure.OutcomeLost, Task: "worker-0", Started: true}
}

func unavailable(id uint64, task string) closure.Outcome {
	return closure.Outcome{ID: id, Kind: closure.OutcomeUnavailable, Task: "worker-0", Error: &closure.Error{Task: task, Message: "no answer"}}
}

func outcomes(o ...closure.Outcome) closure.BatchResult { return closure.BatchResult{Outcomes: o} }

// done returns the answer to a request.
func done(t *testing.T, c *Call) closure.SyncAnswer {
	t.Helper()
	require.True(t, c.Ready())
	return must.Get(c.Answer())(t)
}
