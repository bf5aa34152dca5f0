package barrier

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

// maxKeys is the most arrivals of one task that a round distinguishes. Each process of the task
// that arrived, and whose end was not reported, has one.
const maxKeys = 64

// maxRefused bounds the refusals that are remembered.
const maxRefused = 1000

// Round is the state of one round. It is not safe for concurrent use.
type Round struct {
	participants []string
	digest       string
	opened       time.Time
	tasks        map[string]*participant // for look-ups only: ranging over a map has no order
	absent       int
	brought      int // the sizes of all values
	refused      []spec.BarrierRefusal
	result       *spec.BarrierResult
}

type participant struct {
	arrivals []arrival // nil if it is missing
	since    time.Time // it is there, or missing
}

type arrival struct {
	key, host string
	value     string
	timeout   time.Duration
	deadline  time.Time // zero if it waits without limit
}

// New opens a round for these participants.
func New(participants []string, now time.Time) *Round {
	r := &Round{participants: spec.NormalParticipants(participants), opened: now}
	r.digest = spec.ParticipantsDigest(r.participants)
	r.absent = len(r.participants)
	r.tasks = make(map[string]*participant, r.absent)
	all := make([]participant, r.absent)
	for i, t := range r.participants {
		all[i].since = now
		r.tasks[t] = &all[i]
	}
	return r
}

// Digest is the [spec.ParticipantsDigest] of the participants.
func (r *Round) Digest() string { return r.digest }

// Step applies an event and answers the arrivals whose waiting it ended, in the order of their
// names and arrivals.
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
	p := r.tasks[e.Task]
	if p == nil || e.Digest != r.digest {
		return r.refuse(e, spec.BarrierOthers)
	}
	if slices.ContainsFunc(p.arrivals, func(a arrival) bool { return a.key == e.Key }) {
		return nil // heard before; it is answered with the others, or has been
	}
	if len(p.arrivals) >= maxKeys {
		return r.refuse(e, spec.BarrierTooMany)
	}
	if r.brought+spec.BarrierValueSize(e.Value) > spec.MaxBarrierValues {
		return r.refuse(e, spec.BarrierTooLarge)
	}
	if r.result != nil && r.result.State == spec.BarrierBroken && len(p.arrivals) == 0 {
		// An arrival at a broken round shares its end. Otherwise it would wait in the next
		// round for tasks that gave up in the broken one.
		p.since = e.Now
	}
	first := len(p.arrivals) == 0
	a := arrival{key: e.Key, host: e.Host, value: e.Value, timeout: e.Timeout}
	if e.Timeout > 0 {
		a.deadline = e.Now.Add(e.Timeout)
	}
	p.arrivals = append(p.arrivals, a)
	r.brought += spec.BarrierValueSize(a.value)
	if r.result != nil {
		r.result.Arrived[e.Task] = append(r.result.Arrived[e.Task], e.Key)
		return []Answer{{Task: e.Task, Key: e.Key, Host: e.Host, State: r.result.State}}
	}
	if first {
		p.since = e.Now
		r.absent--
	}
	if r.absent > 0 {
		return nil
	}
	return r.close(spec.BarrierResult{State: spec.BarrierReleased})
}

func (r *Round) refuse(e Arrived, why spec.BarrierRefusalWhy) []Answer {
	refusal := spec.BarrierRefusal{Task: e.Task, Key: e.Key, Why: why}
	if len(r.refused) < maxRefused && !slices.Contains(r.refused, refusal) {
		r.refused = append(r.refused, refusal)
	}
	if r.result != nil {
		r.result.Refused, r.result.Participants = r.refused, r.participants
	}
	return []Answer{{Task: e.Task, Key: e.Key, Host: e.Host, Refused: why}}
}

// withdrawn removes one arrival. A task with another arrival stays in the round.
func (r *Round) withdrawn(e Withdrawn) {
	p := r.tasks[e.Task]
	if r.result != nil || p == nil {
		return
	}
	n := len(p.arrivals)
	p.arrivals = slices.DeleteFunc(p.arrivals, func(a arrival) bool {
		if a.key == e.Key {
			r.brought -= spec.BarrierValueSize(a.value)
		}
		return a.key == e.Key
	})
	if n > 0 && len(p.arrivals) == 0 {
		p.since = e.Now
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

// earliest returns the first deadline, and its task.
func (r *Round) earliest() (deadline time.Time, task string, timeout time.Duration) {
	for _, t := range r.participants {
		for _, a := range r.tasks[t].arrivals {
			if !a.deadline.IsZero() && (deadline.IsZero() || a.deadline.Before(deadline)) {
				deadline, task, timeout = a.deadline, t, a.timeout
			}
		}
	}
	return deadline, task, timeout
}

func (r *Round) ended(e Ended) []Answer {
	p := r.tasks[e.Task]
	if p == nil || len(p.arrivals) > 0 {
		return nil
	}
	how := ""
	if e.How != "" {
		how = " (" + e.How + ")"
	}
	return r.breakUp(spec.BarrierEnded, fmt.Sprintf("%s ended%s without arriving", e.Task, how))
}

// maxNamed bounds the missing tasks that a message names.
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
		for _, a := range r.tasks[t].arrivals {
			result.Arrived[t] = append(result.Arrived[t], a.key)
			if result.Values != nil && a.value != "" {
				result.Values[t] = a.value
			}
			answers = append(answers, Answer{Task: t, Key: a.key, Host: a.host, State: result.State})
		}
	}
	if len(r.refused) > 0 {
		result.Refused, result.Participants = r.refused, r.participants
	}
	r.result = &result
	return answers
}

func (r *Round) missing() []spec.BarrierMissing {
	var missing []spec.BarrierMissing
	for _, t := range r.participants {
		if p := r.tasks[t]; len(p.arrivals) == 0 {
			missing = append(missing, spec.BarrierMissing{Task: t, Since: p.since})
		}
	}
	return missing
}

// Result returns the result of the round, or nil while it is open.
func (r *Round) Result() *spec.BarrierResult { return r.result }

// Deadline returns the time at which [Passed] will break the round, or zero without timeouts.
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
		State: spec.BarrierWaiting, Opened: r.opened, Participants: r.participants,
		Waiting: []spec.BarrierWaiter{}, Missing: []spec.BarrierMissing{},
		Refused: slices.Clone(r.refused), Deadline: r.Deadline(),
	}
	if r.result != nil {
		s.State = r.result.State
	}
	for _, t := range r.participants {
		p := r.tasks[t]
		if len(p.arrivals) > 0 {
			s.Waiting = append(s.Waiting, spec.BarrierWaiter{Task: t, Host: p.arrivals[len(p.arrivals)-1].host, Since: p.since})
		}
	}
	s.Missing = append(s.Missing, r.missing()...)
	return s
}
