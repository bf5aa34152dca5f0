package lease

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The search tries every order of events of a small case: one host with a process, one or two
// witnesses, and the run. Hosts that are not witnesses only have processes. Messages may be lost
// or arrive late, and hosts and timers may be arbitrarily late. Times are ticks of 5 s, so that
// Passed is 5 ticks and LongPassed 8.
const (
	tick = int64(5 * time.Second)
	task = "worker-0"
	// kill is how many ticks a process may outlive its lease, and beatTimeout how many ticks
	// without a heartbeat make the server close an attempt.
	kill, beatTimeout = 2, 1
)

var small = Bounds{Short: 10 * time.Second, Long: 40 * time.Second}

// message is a heartbeat or a question in transit.
type message struct {
	sent, offer int64 // sent is -1 if there is none
	answers     [2]Answer
}

// world is a state. Times are ticks.
type world struct {
	now             int64
	answered, until int64 // of the holder
	offer           int64 // the offer that the host accepted for the task
	beat, ask       message
	said, denied    [2]int64 // by witness; -1 is never
	began           [2]int64
	current         int64 // the last offer
	taken           bool
	since, wait     int64 // counted from the offer, or from the last heartbeat once accepted
	heard, promised int64 // state of the loss; promised is -1 without a promise
	lost            bool
}

// rules modifies the rules for a search. The zero value changes nothing.
type rules struct {
	earlier        time.Duration // makes the run give up earlier by this time
	ignoresWords   bool          // a promise ignores earlier answers
	onlyOne        bool          // one witness's answer is enough
	forgets        bool          // a restart forgets promises
	noLong         bool          // witnesses' answers extend without limit
	outsider       bool          // a host that is not a witness may promise
	promiseForLate bool          // a promise is kept although the host has accepted a later offer
}

type search struct {
	rules
	others int
	most   int64 // ticks
	seen   map[key]bool
	found  []world
	lost   int
}

func begin() world {
	none := message{sent: -1}
	return world{
		now: 0, until: int64(small.Short) / tick, offer: 1, current: 1, taken: true, beat: none, ask: none,
		said: [2]int64{-1, -1}, denied: [2]int64{-1, -1}, promised: -1,
	}
}

func (w world) alive() bool { return w.now < w.until+kill }

// holder, witness and loss return a state's machines, and set stores them.
func (w world) holder() *Holder {
	return &Holder{bounds: small, answered: w.answered * tick, until: w.until * tick}
}

func (w *world) setHolder(h *Holder) { w.answered, w.until = h.answered/tick, h.until/tick }

func (w world) witness(i int) *Witness {
	x := NewWitness(w.began[i]*tick, nil)
	if w.said[i] >= 0 {
		x.said[task] = w.said[i] * tick
	}
	if w.denied[i] >= 0 {
		x.denied[task] = w.denied[i]
	}
	return x
}

func (w *world) setWitness(i int, x *Witness) {
	if at, ok := x.said[task]; ok {
		w.said[i] = at / tick
	}
	if offer, ok := x.denied[task]; ok {
		w.denied[i] = offer
	}
}

var epoch = time.Unix(0, 0)

func at(ticks int64) time.Time { return epoch.Add(time.Duration(ticks * tick)) }

func (w world) loss() *Loss {
	l := &Loss{bounds: small, heard: at(w.heard)}
	if w.promised >= 0 {
		l.said = at(w.promised)
	}
	return l
}

func (w *world) setLoss(l *Loss) {
	w.heard, w.promised = int64(l.heard.Sub(epoch))/tick, -1
	if !l.said.IsZero() {
		w.promised = int64(l.said.Sub(epoch)) / tick
	}
}

// next returns the states after every possible event.
func (s *search) next(w world) (all []world) {
	add := func(change func(*world)) {
		x := w
		change(&x)
		all = append(all, x)
	}
	if w.now < s.most {
		add(func(x *world) { x.now++ })
	}
	canExtend := w.now < w.until
	if w.beat.sent < 0 && canExtend {
		add(func(x *world) { x.beat = message{sent: x.now, offer: x.offer} })
	}
	if w.beat.sent >= 0 {
		add(func(x *world) { x.beat = message{sent: -1} })
		if w.beat.answers[0] == "" { // the heartbeat reaches the server, directly or through another host
			add(func(x *world) {
				x.beat.answers[0] = Gone
				if x.taken && x.current == x.beat.offer {
					x.beat.answers[0], x.since = Renewed, x.now
				}
			})
		}
		if w.beat.answers[0] == Renewed && canExtend {
			add(func(x *world) {
				h := x.holder()
				h.Answered(x.beat.sent * tick)
				x.setHolder(h)
				x.beat = message{sent: -1}
			})
		}
	}
	if w.ask.sent < 0 && canExtend {
		add(func(x *world) { x.ask = message{sent: x.now, offer: x.offer} })
	}
	if w.ask.sent >= 0 {
		s.asked(w, canExtend, add)
	}
	for i := range s.others {
		if w.said[i] < 0 && w.denied[i] < 0 {
			continue // the host has nothing to forget
		}
		add(func(x *world) { // it restarts
			x.began[i], x.said[i] = x.now, -1
			if s.forgets {
				x.denied[i] = -1
			}
		})
	}
	s.server(w, add)
	return all
}

func (s *search) asked(w world, canExtend bool, add func(func(*world))) {
	add(func(x *world) { x.ask = message{sent: -1} })
	for i := range s.others {
		if w.ask.answers[i] == "" {
			add(func(x *world) {
				witness := x.witness(i)
				x.ask.answers[i] = Denied
				if witness.Silent(task, x.ask.offer, x.now*tick) {
					x.ask.answers[i] = Silent
				}
				x.setWitness(i, witness)
			})
		}
	}
	others := s.others
	if s.onlyOne {
		others = 1
	}
	if canExtend && Combine(w.ask.answers[:s.others], others) == Silent {
		add(func(x *world) {
			h := x.holder()
			if s.noLong {
				h.answered = x.ask.sent * tick
			}
			h.Agreed(x.ask.sent * tick)
			h.answered = x.answered * tick
			x.setHolder(h)
			x.ask = message{sent: -1}
		})
	}
}

// server adds the server's and the run's steps.
func (s *search) server(w world, add func(func(*world))) {
	offer := func(x *world, l *Loss) {
		x.setLoss(l)
		x.current, x.taken, x.since = x.current+1, false, x.now
		x.wait = (int64(l.Wait(at(x.now))) + tick - 1) / tick
	}
	switch {
	case w.taken && w.now-w.since >= beatTimeout:
		add(func(x *world) {
			l := x.loss()
			said := l.said
			l.Heard(at(x.now - beatTimeout))
			if s.promiseForLate {
				l.said = said
			}
			offer(x, l)
		})
	case !w.taken:
		if w.now < w.until { // the process is adopted
			add(func(x *world) {
				x.taken, x.since, x.offer = true, x.now, x.current
				h := x.holder()
				h.Answered(x.now * tick)
				x.setHolder(h)
			})
		}
		if w.now-w.since >= w.wait {
			s.unpicked(w, add, offer)
		}
	}
}

func (s *search) unpicked(w world, add func(func(*world)), offer func(*world, *Loss)) {
	decide := func(x *world, l *Loss) {
		if l.Lost(at(x.now).Add(s.earlier)) {
			x.lost = true
			return
		}
		offer(x, l)
	}
	add(func(x *world) { decide(x, x.loss()) })
	if s.outsider {
		add(func(x *world) {
			l := x.loss()
			l.Promised(at(x.now), time.Hour)
			decide(x, l)
		})
	}
	for i := range s.others {
		add(func(x *world) {
			l, witness := x.loss(), x.witness(i)
			quiet := witness.Deny(task, x.current, x.now*tick)
			if s.ignoresWords {
				quiet = time.Hour
			}
			x.setWitness(i, witness)
			l.Promised(at(x.now), quiet)
			decide(x, l)
		})
	}
}

// normal returns the state with times relative to now, and offers by rank, so that states with the
// same future are equal.
func (w world) normal() world {
	// Ages above this limit are equivalent.
	const never = -100
	age := func(t *int64, most int64) {
		if *t >= 0 {
			*t = max(*t-w.now, -most)
		} else {
			*t = never
		}
	}
	age(&w.answered, 8)
	age(&w.until, kill)
	age(&w.since, 11)
	age(&w.heard, 11)
	for _, t := range []*int64{&w.beat.sent, &w.ask.sent} {
		age(t, 2)
	}
	for _, t := range []*int64{&w.promised, &w.said[0], &w.said[1], &w.began[0], &w.began[1]} {
		age(t, 5)
	}
	for i := range w.said {
		w.began[i], w.said[i] = max(w.began[i], w.said[i]), never // only the later one counts
	}
	if w.taken {
		w.wait = 0
	}
	offers := []*int64{&w.offer, &w.beat.offer, &w.ask.offer, &w.denied[0], &w.denied[1], &w.current}
	var ranks []int64
	for _, o := range offers {
		ranks = append(ranks, *o)
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	for _, o := range offers {
		*o = int64(slices.Index(ranks, *o))
	}
	return w
}

// key is a state without its time, in small numbers.
type key [25]int8

func (w world) key() (k key) {
	n := 0
	put := func(numbers ...int64) {
		for _, v := range numbers {
			k[n] = int8(v) //nolint:gosec // normal makes them small
			n++
		}
	}
	flag := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	answers := map[Answer]int64{"": 0, Silent: 1, Denied: 2, Renewed: 3, Gone: 4}
	put(w.answered, w.until, w.offer, w.beat.sent, w.beat.offer, answers[w.beat.answers[0]])
	put(w.ask.sent, w.ask.offer, answers[w.ask.answers[0]], answers[w.ask.answers[1]])
	put(w.said[0], w.said[1], w.denied[0], w.denied[1], w.began[0], w.began[1])
	put(w.current, flag(w.taken), w.since, w.wait, w.heard, w.promised, flag(w.lost))
	return k
}

// run searches until the first fault.
func (s *search) run() {
	s.seen = map[key]bool{}
	// States with fewer ticks come first, so that no state is cut off that could go further.
	levels := make([][]world, s.most+1)
	levels[0] = []world{begin()}
	for now := range levels {
		for len(levels[now]) > 0 && len(s.found) == 0 {
			w := levels[now][len(levels[now])-1]
			levels[now] = levels[now][:len(levels[now])-1]
			k := w.normal().key()
			if s.seen[k] {
				continue
			}
			s.seen[k] = true
			if w.lost {
				s.lost++
				if w.alive() {
					s.found = append(s.found, w)
				}
				continue
			}
			if !w.alive() && w.beat.sent < 0 && w.ask.sent < 0 {
				continue // nothing can go wrong from here
			}
			for _, x := range s.next(w) {
				levels[x.now] = append(levels[x.now], x)
			}
		}
	}
}

// In no order of events does the run give up a host with a living process.
func TestNoOrderOfEventsBreaksTheRules(t *testing.T) {
	for _, c := range []struct {
		others int
		ticks  int64
	}{{1, 7}, {2, 4}} {
		t.Run(fmt.Sprint(c.others+1, " hosts"), func(t *testing.T) {
			s := search{others: c.others, most: c.ticks}
			s.run()
			t.Logf("%d states, in %d of them the task is declared lost", len(s.seen), s.lost)
			require.Empty(t, s.found)
		})
	}
}

// The search finds the errors of different rules.
func TestTheSearchFindsWrongRules(t *testing.T) {
	for name, c := range map[string]struct {
		rules
		others int
		soon   bool // it is found soon
	}{
		"too early":                         {rules{earlier: time.Duration(2 * tick)}, 1, true},
		"earlier words are forgotten":       {rules{ignoresWords: true}, 1, true},
		"one word is enough":                {rules{onlyOne: true}, 2, false},
		"a promise is forgotten":            {rules{forgets: true}, 1, false},
		"words extend without an end":       {rules{noLong: true}, 1, false},
		"a host promises that is not asked": {rules{outsider: true}, 1, true},
		"a promise covers the next offers":  {rules{promiseForLate: true}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && !c.soon {
				t.Skip("seconds")
			}
			t.Parallel()
			s := search{rules: c.rules, others: c.others, most: 14}
			s.run()
			assert.NotEmpty(t, s.found)
		})
	}
}
