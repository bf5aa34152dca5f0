package barrier

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// maxKeys limits the arrivals per task that a round distinguishes. Each belongs to a process that
// arrived and was not reported to have exited.
const maxKeys = 64

// maxRefused limits the refusals that are remembered.
const maxRefused = 1000

// State is an open round's state, which one workflow execution passes to the next.
type State struct {
	Opened time.Time `json:"opened"`
	// Tasks maps names to participants. It is for look-ups only, because map order is random.
	Tasks   map[string]*Participant `json:"tasks"`
	Refused []spec.BarrierRefusal   `json:"refused,omitempty"`
}

// Participant records a task's arrivals, and when the task arrived or went missing.
type Participant struct {
	Since    time.Time `json:"since"`
	Arrivals []Arrival `json:"arrivals,omitempty"`
}

// Arrival is an arrival that counts.
type Arrival struct {
	Key     string        `json:"key"`
	Host    string        `json:"host"`
	Value   string        `json:"value,omitempty"`
	Timeout time.Duration `json:"timeout,omitempty"`
	// Deadline is zero if the arrival waits without limit.
	Deadline time.Time `json:"deadline,omitzero"`
}

// Round is one round. It is not safe for concurrent use.
type Round struct {
	State
	participants []string
	digest       string
	absent       int
	brought      int // total size of all values
	result       *spec.BarrierResult
}

// New opens a round for these participants.
func New(participants []string, now time.Time) *Round {
	return Resume(participants, State{Opened: now, Tasks: make(map[string]*Participant, len(participants))})
}

// Resume returns the round with state s.
func Resume(participants []string, s State) *Round {
	r := &Round{State: s, participants: spec.NormalParticipants(participants)}
	r.digest = spec.ParticipantsDigest(r.participants)
	all := make([]Participant, len(r.participants))
	for i, t := range r.participants {
		p := r.Tasks[t]
		if p == nil {
			p = &all[i]
			p.Since, r.Tasks[t] = s.Opened, p
		}
		for _, a := range p.Arrivals {
			r.brought += spec.BarrierValueSize(a.Value)
		}
		if len(p.Arrivals) == 0 {
			r.absent++
		}
	}
	return r
}

// Digest returns the [spec.ParticipantsDigest] of the participants.
func (r *Round) Digest() string { return r.digest }

// Step applies an event and returns answers for the arrivals that no longer wait, ordered by name
// and arrival.
func (r *Round) Step(e Event) []Answer {
	switch e := e.(type) {
	case Arrived:
		return r.arrived(e)
	case Withdrawn:
		r.withdrawn(e)
	case Passed:
		return r.passed(e.Now)
	case Ended:
		return r.ended(e)
	case RunEnded:
		return r.breakUp(spec.BarrierRunEnded, e.How)
	case Cancelled:
		return r.breakUp(spec.BarrierCancelled, "the barrier was cancelled")
	}
	return nil
}

func (r *Round) arrived(e Arrived) []Answer {
	p := r.Tasks[e.Task]
	if p == nil || e.Digest != r.digest {
		return r.refuse(e, spec.BarrierOthers)
	}
	if slices.ContainsFunc(p.Arrivals, func(a Arrival) bool { return a.Key == e.Key }) {
		return nil // a repeated arrival has been answered or will be answered with the others
	}
	if len(p.Arrivals) >= maxKeys {
		return r.refuse(e, spec.BarrierTooMany)
	}
	if r.brought+spec.BarrierValueSize(e.Value) > spec.MaxBarrierValues {
		return r.refuse(e, spec.BarrierTooLarge)
	}
	if r.result != nil && r.result.State == spec.BarrierBroken && len(p.Arrivals) == 0 {
		// An arrival at a broken round gets the same result. Otherwise it would wait in the next
		// round for tasks that gave up in the broken one.
		p.Since = e.Now
	}
	first := len(p.Arrivals) == 0
	a := Arrival{Key: e.Key, Host: e.Host, Value: e.Value, Timeout: e.Timeout}
	if e.Timeout > 0 {
		a.Deadline = e.Now.Add(e.Timeout)
	}
	p.Arrivals = append(p.Arrivals, a)
	r.brought += spec.BarrierValueSize(a.Value)
	if r.result != nil {
		r.result.Arrived[e.Task] = append(r.result.Arrived[e.Task], e.Key)
		return []Answer{{Task: e.Task, Key: e.Key, Host: e.Host, State: r.result.State}}
	}
	if first {
		p.Since = e.Now
		r.absent--
	}
	if r.absent > 0 {
		return nil
	}
	return r.close(spec.BarrierResult{State: spec.BarrierReleased})
}

func (r *Round) refuse(e Arrived, why spec.BarrierRefusalWhy) []Answer {
	refusal := spec.BarrierRefusal{Task: e.Task, Key: e.Key, Why: why}
	if len(r.Refused) < maxRefused && !slices.Contains(r.Refused, refusal) {
		r.Refused = append(r.Refused, refusal)
	}
	if r.result != nil {
		r.result.Refused, r.result.Participants = r.Refused, r.participants
	}
	return []Answer{{Task: e.Task, Key: e.Key, Host: e.Host, Refused: why}}
}

// withdrawn removes one arrival. A task with another arrival remains in the round.
func (r *Round) withdrawn(e Withdrawn) {
	p := r.Tasks[e.Task]
	if r.result != nil || p == nil {
		return
	}
	n := len(p.Arrivals)
	p.Arrivals = slices.DeleteFunc(p.Arrivals, func(a Arrival) bool {
		if a.Key == e.Key {
			r.brought -= spec.BarrierValueSize(a.Value)
		}
		return a.Key == e.Key
	})
	if n > 0 && len(p.Arrivals) == 0 {
		p.Since = e.Now
		r.absent++
	}
}

func (r *Round) passed(now time.Time) []Answer {
	deadline, task, timeout := r.earliest()
	if r.result != nil || deadline.IsZero() || now.Before(deadline) {
		return nil
	}
	return r.breakUp(spec.BarrierTimeout, fmt.Sprintf("not all participants arrived within %s, the timeout of %s", timeout.Round(time.Millisecond), task))
}

// earliest returns the earliest deadline and the task that set it.
func (r *Round) earliest() (deadline time.Time, task string, timeout time.Duration) {
	for _, t := range r.participants {
		for _, a := range r.Tasks[t].Arrivals {
			if !a.Deadline.IsZero() && (deadline.IsZero() || a.Deadline.Before(deadline)) {
				deadline, task, timeout = a.Deadline, t, a.Timeout
			}
		}
	}
	return deadline, task, timeout
}

func (r *Round) ended(e Ended) []Answer {
	p := r.Tasks[e.Task]
	if p == nil || len(p.Arrivals) > 0 {
		return nil
	}
	how := ""
	if e.How != "" {
		how = " (" + e.How + ")"
	}
	return r.breakUp(spec.BarrierEnded, fmt.Sprintf("%s ended%s without arriving", e.Task, how))
}

// maxNamed limits the missing tasks that a message names.
const maxNamed = 10

func (r *Round) breakUp(why spec.BarrierWhy, message string) []Answer {
	if r.result != nil {
		return nil
	}
	missing := r.missing()
	if len(missing) > 0 {
		named := list.Of(missing[:min(len(missing), maxNamed)], func(m spec.BarrierMissing) string {
			return fmt.Sprintf("%s (since %s)", m.Task, m.Since.UTC().Format(time.RFC3339))
		})
		if more := len(missing) - len(named); more > 0 {
			named = append(named, fmt.Sprintf("%d more", more))
		}
		message += "; missing: " + strings.Join(named, ", ")
	}
	return r.close(spec.BarrierResult{State: spec.BarrierBroken, Why: why, Message: message, Missing: missing})
}

func (r *Round) close(result spec.BarrierResult) []Answer {
	result.Arrived = make(map[string][]string, len(r.participants))
	answers := make([]Answer, 0, len(r.participants))
	if result.State == spec.BarrierReleased && r.brought > 0 {
		result.Values = map[string]string{}
	}
	for _, t := range r.participants {
		for _, a := range r.Tasks[t].Arrivals {
			result.Arrived[t] = append(result.Arrived[t], a.Key)
			if result.Values != nil && a.Value != "" {
				result.Values[t] = a.Value
			}
			answers = append(answers, Answer{Task: t, Key: a.Key, Host: a.Host, State: result.State})
		}
	}
	if len(r.Refused) > 0 {
		result.Refused, result.Participants = r.Refused, r.participants
	}
	r.result = &result
	return answers
}

func (r *Round) missing() []spec.BarrierMissing {
	var missing []spec.BarrierMissing
	for _, t := range r.participants {
		if p := r.Tasks[t]; len(p.Arrivals) == 0 {
			missing = append(missing, spec.BarrierMissing{Task: t, Since: p.Since})
		}
	}
	return missing
}

// Result returns the result of the round, or nil while it is open.
func (r *Round) Result() *spec.BarrierResult { return r.result }

// Deadline returns when [Passed] will break the round, or zero without timeouts.
func (r *Round) Deadline() time.Time {
	if r.result != nil {
		return time.Time{}
	}
	deadline, _, _ := r.earliest()
	return deadline
}

// Missing returns the tasks that have not arrived.
func (r *Round) Missing() []string {
	names := []string{}
	for _, m := range r.missing() {
		names = append(names, m.Task)
	}
	return names
}

// Status returns the round for display. Name, round and generation are set by the caller.
func (r *Round) Status() spec.BarrierStatus {
	s := spec.BarrierStatus{
		State: spec.BarrierWaiting, Opened: r.Opened, Participants: r.participants,
		Waiting: []spec.BarrierWaiter{}, Missing: []spec.BarrierMissing{},
		Refused: slices.Clone(r.Refused), Deadline: r.Deadline(),
	}
	if r.result != nil {
		s.State = r.result.State
	}
	for _, t := range r.participants {
		p := r.Tasks[t]
		if len(p.Arrivals) > 0 {
			s.Waiting = append(s.Waiting, spec.BarrierWaiter{Task: t, Host: p.Arrivals[len(p.Arrivals)-1].Host, Since: p.Since})
		}
	}
	s.Missing = append(s.Missing, r.missing()...)
	return s
}

// Count returns the round's number of arrivals.
func (r *Round) Count() (n int) {
	for _, name := range r.participants {
		n += len(r.Tasks[name].Arrivals)
	}
	return n
}
