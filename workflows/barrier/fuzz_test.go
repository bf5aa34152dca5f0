package barrier

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// FuzzRound feeds random events to a round and checks what the workflow and the hosts rely on: it
// closes once, it is released only if every participant is present, and every waiting arrival gets
// exactly one answer.
func FuzzRound(f *testing.F) {
	f.Add([]byte{})
	for seed := range byte(16) {
		script := []byte{seed}
		for i := range byte(60) {
			script = append(script, i*7+seed, i*5+seed*3, i*3, seed+i)
		}
		f.Add(script)
	}
	// All arrive.
	f.Add([]byte{2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0})
	scripts.Fuzz(f, 2000, func(t *testing.T, data scripts.Bytes) {
		newFuzzed(t, data).run()
	})
}

type waiter struct{ task, key string }

type fuzzed struct {
	t *testing.T
	scripts.Bytes
	tasks       []string
	round, twin *Round
	now         time.Time
	// waiting holds the unanswered arrivals, and told the number of answers of the remaining ones.
	waiting map[waiter]bool
	told    map[waiter]int
	closed  *spec.BarrierResult
}

func newFuzzed(t *testing.T, data scripts.Bytes) *fuzzed {
	f := &fuzzed{t: t, Bytes: data, now: time.Unix(1000, 0), waiting: map[waiter]bool{}, told: map[waiter]int{}}
	for i := range int(f.Byte()%4) + 1 {
		f.tasks = append(f.tasks, fmt.Sprint("worker-", i))
	}
	f.round, f.twin = New(f.tasks, f.now), New(f.tasks, f.now)
	return f
}

func (f *fuzzed) task() string { return fmt.Sprint("worker-", f.Byte()%5) }
func (f *fuzzed) key() string  { return fmt.Sprint("k", f.Byte()%8) }

func (f *fuzzed) event() Event {
	switch f.Byte() % 16 {
	case 0, 1, 2, 3, 4, 5, 6, 7, 8:
		e := Arrived{Host: "a", Task: f.task(), Key: f.key(), Digest: f.round.digest, Now: f.now}
		switch f.Byte() % 8 {
		case 4, 5:
			e.Value = e.Task + e.Key
		case 6:
			e.Value = strings.Repeat("x", spec.MaxBarrierValues/2)
		case 1:
			e.Timeout = time.Second
		case 2:
			e.Timeout = 5 * time.Second
		case 3:
			e.Digest = "another"
		}
		return e
	case 9, 10:
		return Withdrawn{Task: f.task(), Key: f.key(), Now: f.now}
	case 11, 12:
		f.now = f.now.Add(time.Duration(f.Byte()) * 20 * time.Millisecond)
		return Passed{Now: f.now}
	case 13, 14:
		return Ended{Task: f.task()}
	default:
		if f.Byte()%4 == 0 {
			return RunEnded{How: "over"}
		}
		return Cancelled{}
	}
}

func (f *fuzzed) run() {
	for len(f.Bytes) > 0 {
		f.step(f.event())
	}
	// In any state, a cancellation makes all tasks stop waiting.
	f.step(Cancelled{})
	if f.round.Result() == nil || len(f.waiting) > 0 {
		f.t.Fatalf("still waiting: %v", f.waiting)
	}
}

func (f *fuzzed) step(e Event) {
	t := f.t
	present := f.present()
	answers := f.round.Step(e)
	if f.round.Result() == nil && f.Byte()%4 == 0 {
		f.twin = f.copied(f.twin)
	}
	if again := f.twin.Step(e); !reflect.DeepEqual(answers, again) {
		t.Fatalf("%#v: not deterministic: %v, %v", e, answers, again)
	}
	if one, other := scripts.JSON(t, f.round.Status()), scripts.JSON(t, f.twin.Status()); one != other {
		t.Fatalf("%#v: not deterministic: %s, %s", e, one, other)
	}
	refused := map[waiter]bool{}
	for _, a := range answers {
		if a.Refused != "" {
			refused[waiter{a.Task, a.Key}] = true
		}
	}
	switch e := e.(type) {
	case Arrived:
		w := waiter{e.Task, e.Key}
		if f.told[w] == 0 && !f.waiting[w] && !refused[w] && e.Digest == f.round.digest && slices.Contains(f.tasks, e.Task) {
			f.waiting[w] = true
			present[e.Task] = true
		} else if len(answers) > 0 && !refused[w] {
			t.Fatalf("%#v answers %v", e, answers)
		}
	case Withdrawn:
		delete(f.waiting, waiter{e.Task, e.Key})
	}
	for _, a := range answers {
		w := waiter{a.Task, a.Key}
		if a.Refused != "" {
			continue
		}
		if !f.waiting[w] {
			t.Fatalf("%v is answered and does not wait", w)
		}
		delete(f.waiting, w)
		if f.told[w]++; f.told[w] > 1 {
			t.Fatalf("%v is answered twice", w)
		}
		if a.State == spec.BarrierReleased && len(present) < len(f.tasks) {
			t.Fatalf("released with %v", present)
		}
	}
	f.check()
}

// copied returns the round as restored by another execution of its workflow.
func (f *fuzzed) copied(r *Round) *Round {
	var s State
	if err := json.Unmarshal([]byte(scripts.JSON(f.t, r.State)), &s); err != nil {
		f.t.Fatal(err)
	}
	return Resume(f.tasks, s)
}

// present returns the tasks with a waiting arrival.
func (f *fuzzed) present() map[string]bool {
	present := map[string]bool{}
	if f.closed != nil {
		for t := range f.closed.Arrived {
			present[t] = true
		}
	}
	for w := range f.waiting {
		present[w.task] = true
	}
	return present
}

func (f *fuzzed) check() {
	t, r := f.t, f.round.Result()
	switch {
	case f.closed != nil && (r == nil || r.State != f.closed.State || r.Why != f.closed.Why):
		t.Fatalf("closed as %v and then as %v", f.closed, r)
	case r == nil && len(f.round.Missing()) == 0:
		t.Fatal("all are there and nobody is released")
	case r != nil && len(f.waiting) > 0:
		t.Fatalf("closed with %v waiting", f.waiting)
	case r != nil && r.State == spec.BarrierReleased && (len(r.Arrived) != len(f.tasks) || len(r.Missing) > 0 || r.Why != ""):
		t.Fatalf("%#v", r)
	case r != nil && r.State == spec.BarrierBroken && (r.Why == "" || r.Message == "" || len(r.Missing) == 0):
		t.Fatalf("%#v", r)
	}
	if r != nil && f.closed == nil {
		c := *r
		f.closed = &c
	}
	s := f.round.Status()
	if len(s.Waiting)+len(s.Missing) != len(f.tasks) {
		t.Fatalf("%#v", s)
	}
}
