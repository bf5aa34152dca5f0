package taskapi

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/clusterrun/clusterrun/activities/internal/wire"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// keepAnswers is how many of its last answers at barriers are kept for a
	// task, for arrivals that come again because the answer got lost.
	keepAnswers = 32
	// maxArrivals is how often a task can wait in one round.
	maxArrivals = 64
	// maxNames is of how many barriers the rounds are counted. One that was forgotten
	// begins with round 1 again.
	maxNames = 4096
)

// outcome is what an arrival is told: released, or what went wrong.
type outcome struct {
	released *wire.Released
	problem  *wire.Problem
}

// rounds are the local barriers of one generation of a run.
type rounds struct {
	mu      sync.Mutex
	open    map[string]*round
	counts  map[string]int // the last round, by name
	ended   map[string]string
	over    string
	answers map[string]*answers // by task
	log     *roundLog
}

// round is one that waits for participants.
type round struct {
	name         string
	number       int
	participants []string
	// arrived has the first arrival of each task that is there.
	arrived map[string]*arrived
	opened  time.Time
}

// arrived is one arrival of a task in a round. More than one connection may wait for
// its answer when the first was cut and that is not known yet.
type arrived struct {
	key     string
	waiting []*ticket
	timer   *time.Timer
	// next is another arrival of the task: of another of its threads, or of one that
	// gave up an arrival when that is not known yet.
	next *arrived
}

// find is an arrival by its key, and how many the task has.
func (o *round) find(task, key string) (found *arrived, all int) {
	for a := o.arrived[task]; a != nil; a = a.next {
		if all++; a.key == key {
			found = a
		}
	}
	return found, all
}

// drop takes an arrival out.
func (o *round) drop(task string, gone *arrived) {
	for at := o.arrived[task]; at != nil; at = at.next {
		if at.next == gone {
			at.next = gone.next
			return
		}
	}
	if o.arrived[task] != gone {
		return
	}
	if gone.next == nil {
		delete(o.arrived, task)
		return
	}
	o.arrived[task] = gone.next
}

// ticket is one who waits for an answer.
type ticket struct {
	rounds  *rounds
	round   *round
	task    string
	arrival *arrived
	// tell gives the answer, once. It must not take long.
	tell func(outcome)
}

func newRounds(log *roundLog) *rounds {
	r := &rounds{
		open: map[string]*round{}, counts: map[string]int{}, ended: map[string]string{},
		answers: map[string]*answers{}, log: log,
	}
	log.each(func(rec released) {
		r.counts[rec.name] = rec.number
		for i, p := range rec.participants {
			for _, key := range p.keys {
				r.remember(p.task, rec.name, key, outcome{released: &wire.Released{
					Round: rec.number, Index: i, Parties: len(rec.participants),
				}})
			}
		}
	})
	return r
}

// arrive joins the open round. The answer comes through tell, and may come before
// arrive returns. The ticket is for those who do not want to wait any more.
func (r *rounds) arrive(a Arrival, tell func(outcome)) *ticket {
	t := &ticket{rounds: r, task: a.Task, tell: tell}
	r.mu.Lock()
	told, out := r.join(t, a)
	r.mu.Unlock()
	out.tell(told)
	return t
}

// verdict is an outcome for all who are told.
type verdict struct {
	outcome
	// round is set where it was released: each is told its own place in it.
	round *round
}

func (v verdict) tell(told []*ticket) {
	for _, t := range told {
		t.tell(v.of(t))
	}
}

// bad is a verdict that is the same for everybody.
func bad(p *wire.Problem) verdict { return verdict{outcome: outcome{problem: p}} }

func (v verdict) of(t *ticket) outcome {
	if v.round == nil {
		return v.outcome
	}
	return outcome{released: &wire.Released{
		Round: v.round.number, Index: slices.Index(v.round.participants, t.task), Parties: len(v.round.participants),
	}}
}

// join puts the arrival into its round and returns who is to be told what.
func (r *rounds) join(t *ticket, a Arrival) ([]*ticket, verdict) {
	if before, ok := r.answers[a.Task].find(a.Name, a.Key); ok {
		return []*ticket{t}, verdict{outcome: before}
	}
	refuse := func(p *wire.Problem) ([]*ticket, verdict) { return []*ticket{t}, bad(p) }
	if r.over != "" {
		return refuse(&wire.Problem{Code: wire.CodeBarrierBroken, Message: fmt.Sprintf("barrier %q: %s", a.Name, r.over)})
	}
	for task, how := range r.ended {
		if slices.Contains(a.Participants, task) {
			return refuse(&wire.Problem{Code: wire.CodeBarrierBroken,
				Message: fmt.Sprintf("barrier %q cannot be released: %s %s and does not come back", a.Name, task, how)})
		}
	}
	o := r.open[a.Name]
	if o == nil {
		o = &round{
			name: a.Name, number: r.counts[a.Name] + 1, participants: a.Participants,
			arrived: make(map[string]*arrived, len(a.Participants)), opened: time.Now(),
		}
		r.open[a.Name] = o
	} else if !slices.Equal(o.participants, a.Participants) {
		return refuse(&wire.Problem{Code: wire.CodeBarrierMismatch, Message: fmt.Sprintf(
			"barrier %q, round %d: %s", a.Name, o.number, spec.OtherParticipantsText(a.Task, a.Participants, o.participants))})
	}
	there, all := o.find(a.Task, a.Key)
	if there != nil {
		t.round, t.arrival = o, there
		there.waiting = append(there.waiting, t)
		return nil, verdict{}
	}
	if all >= maxArrivals {
		return refuse(&wire.Problem{Code: wire.CodeAlreadyWaiting, Message: fmt.Sprintf(
			"barrier %q, round %d: %s waits there too often at the same time; let one thread of it wait", a.Name, o.number, a.Task)})
	}
	there = &arrived{key: a.Key, waiting: []*ticket{t}, next: o.arrived[a.Task]}
	t.round, t.arrival = o, there
	o.arrived[a.Task] = there
	switch {
	case len(o.arrived) == len(o.participants):
		return r.release(o)
	case a.Timeout == 0:
		return r.breakOff(o, wire.CodeBarrierTimeout, func(missing string) string {
			return missing + " had not arrived, and the timeout is 0"
		})
	case a.Timeout > 0:
		there.timer = time.AfterFunc(a.Timeout, func() { r.timeout(o, there, a.Timeout) })
	}
	return nil, verdict{}
}

// release ends a round well.
func (r *rounds) release(o *round) ([]*ticket, verdict) {
	r.count(o)
	// Written down before anybody is told.
	r.log.append(o)
	var told []*ticket
	for i, task := range o.participants {
		told = r.settle(told, o, task, outcome{released: &wire.Released{Round: o.number, Index: i, Parties: len(o.participants)}})
	}
	return told, verdict{round: o}
}

// breakOff ends a round badly, for all who wait. Why says it, given the names of those
// who are missing.
func (r *rounds) breakOff(o *round, code string, why func(missing string) string) ([]*ticket, verdict) {
	r.count(o)
	s := o.standing()
	out := outcome{problem: &wire.Problem{Code: code, Barrier: s, Message: fmt.Sprintf(
		"barrier %q, round %d: %s; arrived: %s, the first at %s",
		o.name, o.number, why(enumerate(s.Missing)), enumerate(s.Arrived), s.Since)}}
	var told []*ticket
	for task := range o.arrived {
		told = r.settle(told, o, task, out)
	}
	return told, verdict{outcome: out}
}

// settle ends the arrivals of a task, and appends those who are to be told.
func (r *rounds) settle(told []*ticket, o *round, task string, out outcome) []*ticket {
	for a := o.arrived[task]; a != nil; a = a.next {
		told = append(told, a.end()...)
		r.remember(task, o.name, a.key, out)
	}
	return told
}

// end is the end of an arrival, for those who have waited.
func (a *arrived) end() []*ticket {
	if a.timer != nil {
		a.timer.Stop()
	}
	waiting := a.waiting
	a.waiting = nil
	return waiting
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

func (o *round) standing() *wire.Standing {
	s := &wire.Standing{
		Name: o.name, Round: o.number, Arrived: []string{}, Missing: []string{},
		Since: o.opened.UTC().Format(time.RFC3339), Waited: time.Since(o.opened).Seconds(),
	}
	for _, task := range o.participants {
		if o.arrived[task] != nil {
			s.Arrived = append(s.Arrived, task)
		} else {
			s.Missing = append(s.Missing, task)
		}
	}
	return s
}

// timeout is called when the time of an arrival has passed.
func (r *rounds) timeout(o *round, a *arrived, after time.Duration) {
	r.mu.Lock()
	if r.open[o.name] != o || len(a.waiting) == 0 {
		r.mu.Unlock()
		return
	}
	told, out := r.breakOff(o, wire.CodeBarrierTimeout, func(missing string) string {
		return fmt.Sprintf("%s did not arrive within %s", missing, after.Round(time.Millisecond))
	})
	r.mu.Unlock()
	out.tell(told)
}

// leave takes back the arrival of someone who does not wait any more.
func (t *ticket) leave() {
	r := t.rounds
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.arrival == nil {
		return
	}
	i := slices.Index(t.arrival.waiting, t)
	if i < 0 {
		return // it has an answer
	}
	t.arrival.waiting = slices.Delete(t.arrival.waiting, i, i+1)
	if len(t.arrival.waiting) == 0 {
		r.remove(t.round, t.task, t.arrival)
	}
}

// remove takes an arrival out of its round, and gives those who waited.
func (r *rounds) remove(o *round, task string, a *arrived) []*ticket {
	o.drop(task, a)
	if len(o.arrived) == 0 && r.open[o.name] == o {
		delete(r.open, o.name)
	}
	return a.end()
}

// withdraw takes an arrival back by its key; the outcome is set where there has
// been one. It says whether such an arrival is known here.
func (r *rounds) withdraw(task, name, key string) (out outcome, known bool) {
	r.mu.Lock()
	if out, ok := r.answers[task].find(name, key); ok {
		r.mu.Unlock()
		return out, true
	}
	var gone *arrived
	if o := r.open[name]; o != nil {
		if gone, _ = o.find(task, key); gone != nil {
			told := r.remove(o, task, gone)
			r.mu.Unlock()
			bad(withdrawn(name)).tell(told)
			return outcome{}, true
		}
	}
	r.mu.Unlock()
	return outcome{}, false
}

// processEnded withdraws what the process of a task was waiting for. One that
// does not come back breaks the rounds it is missing in.
func (r *rounds) processEnded(task string, final bool, how string) {
	type news struct {
		told []*ticket
		out  verdict
	}
	var all []news
	r.mu.Lock()
	delete(r.answers, task) // the keys were that process's
	for _, o := range slices.Collect(maps.Values(r.open)) {
		for a := o.arrived[task]; a != nil; a = o.arrived[task] {
			all = append(all, news{r.remove(o, task, a), bad(ofEnded(task))})
		}
		if final && len(o.arrived) > 0 && slices.Contains(o.participants, task) {
			told, out := r.breakOff(o, wire.CodeBarrierBroken, func(missing string) string {
				return fmt.Sprintf("%s %s without arriving and does not come back; missing: %s", task, how, missing)
			})
			all = append(all, news{told, out})
		}
	}
	if final {
		r.ended[task] = how
	}
	r.mu.Unlock()
	for _, n := range all {
		n.out.tell(n.told)
	}
}

// starts says that a process of the task is there (again).
func (r *rounds) starts(task string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ended, task)
}

// end breaks all rounds, now and from now on.
func (r *rounds) end(why string) {
	var told []*ticket
	r.mu.Lock()
	r.over = why
	for _, o := range r.open {
		for _, first := range o.arrived {
			for a := first; a != nil; a = a.next {
				told = append(told, a.end()...)
			}
		}
	}
	clear(r.open)
	r.log.remove()
	r.mu.Unlock()
	bad(overBecause(why)).tell(told)
}

// answers are the last ones a task was given.
type answers struct {
	next int
	ring [keepAnswers]struct {
		name, key string
		outcome   outcome
	}
}

func (a *answers) find(name, key string) (outcome, bool) {
	if a == nil {
		return outcome{}, false
	}
	for i := range a.ring {
		if e := &a.ring[i]; e.key == key && e.name == name {
			return e.outcome, true
		}
	}
	return outcome{}, false
}

func (a *answers) add(name, key string, out outcome) {
	e := &a.ring[a.next%keepAnswers]
	e.name, e.key, e.outcome = name, key, out
	a.next++
}

func (r *rounds) remember(task, name, key string, out outcome) {
	a := r.answers[task]
	if a == nil {
		a = &answers{}
		r.answers[task] = a
	}
	a.add(name, key, out)
}
