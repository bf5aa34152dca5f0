package taskapi

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/barrier"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// maxNames limits how many barriers have their rounds counted. A barrier that was dropped restarts
// at round 1.
const maxNames = 4096

// rounds are one run generation's local barriers. Package barrier decides an event's effect on a
// round; this type holds the lock, the timers, the waiting arrivals and the answers.
type rounds struct {
	mu      sync.Mutex
	open    map[string]*round
	counts  map[string]int // the last round, by name
	ended   map[string]string
	over    string
	answers map[string]*answers // by task, also of barriers across hosts
	log     *roundLog
}

// round is a round waiting for participants.
type round struct {
	rules        *barrier.Round
	name         string
	number       int
	participants []string // in rank order
	opened       time.Time
	arrived      map[arrivalID]*arrived
}

// arrivalID names an arrival in a round.
type arrivalID struct{ task, key string }

// arrived is an arrival that counts. Several connections may wait for its answer, because a broken
// connection may not have been detected yet.
type arrived struct {
	waiting []*ticket
	timer   *time.Timer
}

// ticket is a request waiting for an answer.
type ticket struct {
	rounds *rounds
	round  *round
	id     arrivalID
	// tell delivers the answer once, and must be fast.
	tell func(outcome)
}

// told is a ticket with its answer.
type told struct {
	*ticket
	outcome
}

// deliver delivers answers, but first logs a released round's answers. r.mu must not be held.
func (r *rounds) deliver(all []told) {
	if slices.ContainsFunc(all, func(t told) bool { return t.released != nil }) {
		r.log.write(func() []byte {
			r.mu.Lock()
			defer r.mu.Unlock()
			b := r.log.unwritten
			r.log.unwritten = nil
			return b
		})
	}
	for _, t := range all {
		t.tell(t.outcome)
	}
}

func newRounds(log *roundLog) *rounds {
	r := &rounds{
		open: map[string]*round{}, counts: map[string]int{}, ended: map[string]string{},
		answers: map[string]*answers{}, log: log,
	}
	log.each(func(rec released) {
		r.counts[rec.Name] = rec.Number
		for i, task := range rec.Participants {
			for _, key := range rec.Keys[task] {
				r.remember(task, rec.Name, key, outcome{released: &wire.Released{
					Round: rec.Number, Index: i, Parties: len(rec.Participants), Values: rec.Values,
				}})
			}
		}
	})
	return r
}

// arrive joins the open round. It calls answer with the outcome, perhaps before arrive returns. The
// ticket lets the request leave before it is answered.
func (r *rounds) arrive(a barriers.Arrival, answer func(outcome)) *ticket {
	t := &ticket{rounds: r, id: arrivalID{a.Task, a.Key}, tell: answer}
	r.mu.Lock()
	all := r.join(t, a)
	r.mu.Unlock()
	r.deliver(all)
	return t
}

// join adds the arrival to its round and returns the answers to deliver. r.mu must be held.
func (r *rounds) join(t *ticket, a barriers.Arrival) []told {
	if before, ok := r.answers[a.Task].find(a.Name, a.Key); ok {
		return []told{{t, before}}
	}
	refuse := func(code, format string, args ...any) []told {
		return []told{{t, outcome{problem: &wire.Problem{Code: code, Message: fmt.Sprintf(format, args...)}}}}
	}
	if r.over != "" {
		return refuse(wire.CodeBarrierBroken, "barrier %q: %s", a.Name, r.over)
	}
	for task, how := range r.ended {
		if slices.Contains(a.Participants, task) {
			return refuse(wire.CodeBarrierBroken, "barrier %q cannot be released: %s %s and does not come back", a.Name, task, how)
		}
	}
	now := time.Now()
	o := r.open[a.Name]
	if o == nil {
		o = &round{
			rules: barrier.New(a.Participants, now), name: a.Name, number: r.counts[a.Name] + 1, participants: a.Participants,
			opened: now, arrived: make(map[arrivalID]*arrived, len(a.Participants)),
		}
		r.open[a.Name] = o
	}
	answers := o.rules.Step(barrier.Arrived{Task: a.Task, Key: a.Key, Digest: o.digestOf(a.Participants), Value: a.Value, Timeout: a.Timeout, Now: now})
	if len(answers) > 0 {
		switch answers[0].Refused {
		case spec.BarrierOthers:
			return refuse(wire.CodeBarrierMismatch, "barrier %q, round %d: %s", a.Name, o.number, spec.OtherParticipantsText(a.Task, a.Participants, o.participants))
		case spec.BarrierTooMany:
			return refuse(wire.CodeAlreadyWaiting, "barrier %q, round %d: %s is waiting at it too many times; let only one thread wait", a.Name, o.number, a.Task)
		case spec.BarrierTooLarge:
			return refuse(wire.CodeTooLarge, "barrier %q, round %d: %s", a.Name, o.number, spec.TooLargeText())
		}
	}
	t.round = o
	here := o.arrived[t.id]
	if here == nil {
		here = &arrived{}
		o.arrived[t.id] = here
		if a.Timeout > 0 && len(answers) == 0 {
			here.timer = time.AfterFunc(a.Timeout, func() { r.passed(o, a.Timeout) })
		}
	}
	here.waiting = append(here.waiting, t)
	return r.settle(o, answers, nil)
}

// digestOf returns the digest of participants. In the usual case, in which they are the round's
// participants, it does not recompute the hash.
func (o *round) digestOf(participants []string) string {
	if slices.Equal(participants, o.participants) {
		return o.rules.Digest()
	}
	return spec.ParticipantsDigest(spec.NormalParticipants(participants))
}

// settle closes a round if the rules answer its arrivals, and returns the answers to deliver.
// broken returns the problem for arrivals that were not released. r.mu must be held.
func (r *rounds) settle(o *round, answers []barrier.Answer, broken func() *wire.Problem) []told {
	if len(answers) == 0 {
		return nil
	}
	r.count(o)
	var out outcome
	var values []string
	if result := o.rules.Result(); result.State == spec.BarrierReleased {
		values = spec.ValuesOf(result.Values, o.participants)
		r.log.add(released{o.name, o.number, o.participants, result.Arrived, values})
	} else {
		out.problem = broken()
	}
	all := make([]told, 0, len(answers))
	for _, a := range answers {
		if out.problem == nil {
			out.released = &wire.Released{Round: o.number, Index: slices.Index(o.participants, a.Task), Parties: len(o.participants), Values: values}
		}
		r.remember(a.Task, o.name, a.Key, out)
		all = o.end(all, arrivalID{a.Task, a.Key}, out)
	}
	return all
}

// end removes an arrival, and appends the answers to its waiting requests.
func (o *round) end(all []told, id arrivalID, out outcome) []told {
	a := o.arrived[id]
	delete(o.arrived, id)
	if a.timer != nil {
		a.timer.Stop()
	}
	for _, t := range a.waiting {
		all = append(all, told{t, out})
	}
	return all
}

func (r *rounds) count(o *round) {
	delete(r.open, o.name)
	if _, known := r.counts[o.name]; !known && len(r.counts) >= maxNames {
		for name := range r.counts {
			if r.open[name] == nil {
				delete(r.counts, name)
				break
			}
		}
	}
	r.counts[o.name] = o.number
}

// broken returns the problem for arrivals in a broken round. why is given the missing tasks' names,
// and returns the reason.
func (o *round) broken(code string, why func(missing string) string) *wire.Problem {
	s := o.standing()
	return &wire.Problem{Code: code, Barrier: s, Message: fmt.Sprintf(
		"barrier %q, round %d: %s; arrived: %s, the first at %s",
		o.name, o.number, why(enumerate(s.Missing)), enumerate(s.Arrived), s.Since)}
}

// standing returns a round's state when it closed.
func (o *round) standing() *wire.Standing {
	s := &wire.Standing{
		Name: o.name, Round: o.number, Arrived: []string{}, Missing: []string{},
		Since: o.opened.UTC().Format(time.RFC3339), Waited: time.Since(o.opened).Seconds(),
	}
	there := o.rules.Result().Arrived
	for _, task := range o.participants {
		if there[task] != nil {
			s.Arrived = append(s.Arrived, task)
		} else {
			s.Missing = append(s.Missing, task)
		}
	}
	return s
}

// passed is called when an arrival's timeout expires.
func (r *rounds) passed(o *round, after time.Duration) {
	r.mu.Lock()
	all := r.settle(o, o.rules.Step(barrier.Passed{Now: time.Now()}), func() *wire.Problem {
		return o.broken(wire.CodeBarrierTimeout, func(missing string) string {
			if after == atOnce {
				return missing + " had not arrived, and the timeout is 0"
			}
			return fmt.Sprintf("%s did not arrive within %s", missing, after.Round(time.Millisecond))
		})
	})
	r.mu.Unlock()
	r.deliver(all)
}

// leave withdraws the arrival of a request that no longer waits.
func (t *ticket) leave() {
	r := t.rounds
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.round == nil || t.round.arrived[t.id] == nil {
		return // the arrival has been answered
	}
	a := t.round.arrived[t.id]
	a.waiting = slices.DeleteFunc(a.waiting, func(o *ticket) bool { return o == t })
	if len(a.waiting) == 0 {
		r.remove(t.round, t.id, nil)
	}
}

// remove withdraws an arrival, and returns the answers to deliver. r.mu must be held.
func (r *rounds) remove(o *round, id arrivalID, why *wire.Problem) []told {
	all := o.end(nil, id, outcome{problem: why})
	o.rules.Step(barrier.Withdrawn{Task: id.task, Key: id.key, Now: time.Now()})
	if len(o.arrived) == 0 {
		delete(r.open, o.name)
	}
	return all
}

// withdraw withdraws an arrival by its key, or returns its answer.
func (r *rounds) withdraw(task, name, key string) outcome {
	var all []told
	defer func() { r.deliver(all) }()
	r.mu.Lock()
	defer r.mu.Unlock()
	if out, ok := r.answers[task].find(name, key); ok {
		return out
	}
	id := arrivalID{task, key}
	if o := r.open[name]; o != nil && o.arrived[id] != nil {
		all = r.remove(o, id, withdrawn(name))
	}
	return outcome{}
}

// processEnded withdraws the arrivals of a task's process. If the task will not return, the rounds
// that are missing it are broken.
func (r *rounds) processEnded(task string, final bool, how string) {
	var all []told
	r.mu.Lock()
	delete(r.answers, task) // the keys belong to that process
	for _, o := range r.open {
		for id := range o.arrived {
			if id.task == task {
				all = append(all, r.remove(o, id, ofEnded(task))...)
			}
		}
		if final {
			all = append(all, r.settle(o, o.rules.Step(barrier.Ended{Task: task, How: how}), func() *wire.Problem {
				return o.broken(wire.CodeBarrierBroken, func(missing string) string {
					return fmt.Sprintf("%s %s without arriving and does not come back; missing: %s", task, how, missing)
				})
			})...)
		}
	}
	if final {
		r.ended[task] = how
	}
	r.mu.Unlock()
	r.deliver(all)
}

// starts records that the task has a process.
func (r *rounds) starts(task string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ended, task)
}

// end breaks all rounds, including future ones.
func (r *rounds) end(why string) {
	var all []told
	r.mu.Lock()
	r.over = why
	for _, o := range r.open {
		all = append(all, r.settle(o, o.rules.Step(barrier.RunEnded{How: why}), func() *wire.Problem { return overBecause(why) })...)
	}
	r.mu.Unlock()
	r.log.remove()
	r.deliver(all)
}

// close closes the log, which the next server reads. A timer that still fires finds no waiting
// arrivals.
func (r *rounds) close() { r.log.close() }

// answered records the answer to an arrival at a barrier across hosts.
func (r *rounds) answered(task, name, key string, out outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remember(task, name, key, out)
}

func (r *rounds) remember(task, name, key string, out outcome) {
	a := r.answers[task]
	if a == nil {
		a = &answers{}
		r.answers[task] = a
	}
	a.add(name, key, out)
}
