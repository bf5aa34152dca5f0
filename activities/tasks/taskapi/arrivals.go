package taskapi

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// postBarrier answers an arrival at a barrier.
func postBarrier(r *request) (any, *wire.Problem) {
	var in wire.Arrive
	if problem := r.decode(&in, maxArrive); problem != nil {
		return nil, problem
	}
	a, local, problem := r.arrival(in)
	if problem != nil {
		return nil, problem
	}
	if !local {
		o, ok := r.arriveElsewhere(r.Context(), a)
		if !ok {
			panic(http.ErrAbortHandler) // only closes the connection
		}
		return o.answer()
	}
	resume := r.endpoint.waits(a)
	told := make(chan outcome, 1)
	t := r.endpoint.rounds.arrive(a, func(o outcome) {
		resume(o)
		told <- o
	})
	select {
	case o := <-told:
		return o.answer()
	case <-r.Context().Done():
		// The client no longer reads this answer.
		t.leave()
		resume(outcome{})
		return nil, &wire.Problem{Code: wire.CodeBarrierWithdrawn, Message: "the connection was closed"}
	}
}

func (o outcome) answer() (any, *wire.Problem) {
	if o.problem != nil {
		return nil, o.problem
	}
	return o.released, nil
}

// arrival validates a request. It returns the arrival, and reports whether this host alone releases
// the barrier.
func (r *request) arrival(in wire.Arrive) (a barriers.Arrival, local bool, problem *wire.Problem) {
	task := r.endpoint.view()
	a = barriers.Arrival{
		Run:  spec.RunRef{WorkflowID: task.ID.Run.WorkflowID, RunID: task.ID.Run.RunID, Generation: task.ID.Generation},
		Task: task.ID.Task, Name: r.name, Key: in.Key, Value: in.Value,
	}
	if problem = checkName(a.Name); problem != nil {
		return a, false, problem
	}
	if problem = checkKey(a.Key); problem != nil {
		return a, false, problem
	}
	if len(a.Value) > wire.MaxValue {
		return a, false, invalid("value", fmt.Sprintf("it has %d bytes; use at most %d, and pass a file's path instead of more", len(a.Value), wire.MaxValue))
	}
	if a.Key == "" {
		a.Key = rand.Text()
	}
	if in.Timeout != "" {
		d, err := time.ParseDuration(in.Timeout)
		if err != nil || d < 0 {
			return a, false, invalid("timeout", `must be a duration of 0s or more, such as "30s" or "1m30s"`)
		}
		a.Timeout = max(d, atOnce)
	}
	if a.Participants, problem = task.View.participants(in.Participants); problem != nil {
		return a, false, problem
	}
	if !slices.Contains(a.Participants, a.Task) {
		return a, false, &wire.Problem{Code: wire.CodeNotAParticipant, Message: fmt.Sprintf(
			"%s is not a participant of this barrier; its participants are %s; name them with participants", a.Task, enumerate(a.Participants))}
	}
	away := r.server.away(task, a.Participants)
	switch {
	case task.View.Local && len(away) > 0:
		return a, false, &wire.Problem{Code: wire.CodeNotLocal, Message: fmt.Sprintf(
			"the run's spec makes all its barriers local (barriers: local), but %s not on this host; name participants on this host", isAre(away))}
	case in.Local && len(away) > 0:
		return a, false, &wire.Problem{Code: wire.CodeNotLocal, Message: fmt.Sprintf(
			"the barrier cannot be local because %s not on this host; omit local, or name participants on this host", isAre(away))}
	case in.Local, task.View.Local:
		return a, true, nil
	case r.server.Barriers != nil:
		a.Here = without(a.Participants, away)
		return a, false, nil
	case len(away) > 0:
		return a, false, &wire.Problem{Code: wire.CodeNotThere, Message: fmt.Sprintf(
			"this host worker does not support barriers across hosts, and %s not on this host", isAre(away))}
	}
	return a, true, nil
}

// away returns the participants on other hosts.
func (s *Server) away(t Task, participants []string) (away []string) {
	for _, p := range participants {
		// A task that was added to the run later appears only in its own view.
		if !t.View.Here[p] && p != t.ID.Task && !s.serves(runkey.Task{Run: t.ID.Run, Generation: t.ID.Generation, Task: p}) {
			away = append(away, p)
		}
	}
	return away
}

// without returns names minus out, which must be in the same order.
func without(names, out []string) []string {
	left := make([]string, 0, len(names)-len(out))
	for _, name := range names {
		if len(out) > 0 && out[0] == name {
			out = out[1:]
			continue
		}
		left = append(left, name)
	}
	return left
}

func (s *Server) serves(id runkey.Task) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tasks[id] != nil
}

func isAre(tasks []string) string {
	if len(tasks) == 1 {
		return tasks[0] + " is"
	}
	return enumerate(tasks) + " are"
}

// deleteBarrier withdraws an arrival.
func deleteBarrier(r *request) (any, *wire.Problem) {
	key := r.URL.Query().Get("key")
	if key == "" {
		return nil, invalid("key", "missing; add the arrival's key, as in ?key=KEY")
	}
	if problem := checkName(r.name); problem != nil {
		return nil, problem
	}
	r.endpoint.visits.withdraw(r.Context(), r.name, key)
	// An answer, even one given just now, counts, because all arrivals were released together.
	out := r.endpoint.rounds.withdraw(r.endpoint.id.Task, r.name, key)
	if out.problem != nil {
		return nil, out.problem
	}
	return wire.Withdrawn{Withdrawn: out.released == nil, Released: out.released}, nil
}

func checkName(name string) *wire.Problem {
	switch {
	case name == "":
		return invalid("name", "it is empty; name the barrier")
	case len(name) > wire.MaxName:
		return invalid("name", fmt.Sprintf("it has %d bytes; use at most %d", len(name), wire.MaxName))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return invalid("name", "contains control characters or is not UTF-8")
	}
	return nil
}

func checkKey(key string) *wire.Problem {
	switch {
	case len(key) > wire.MaxKey:
		return invalid("key", fmt.Sprintf("it has %d bytes; use at most %d", len(key), wire.MaxKey))
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }):
		return invalid("key", "must consist of ASCII letters, digits and punctuation, without spaces and quotes")
	}
	return nil
}
