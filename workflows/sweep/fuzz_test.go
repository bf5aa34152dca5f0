package sweep

import (
	"reflect"
	"testing"
	"time"

	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// FuzzMachine feeds random events to a sweep, and checks what the workflow relies on: the number
// of running trials is limited, a trial is started only while it does not run, nothing waits while
// a trial may start, the sweep ends exactly once and only if nothing runs, and the next execution,
// which has only the snapshot, decides in the same way.
func FuzzMachine(f *testing.F) {
	f.Add([]byte{})
	for seed := range byte(16) {
		script := []byte{seed}
		for i := range byte(80) {
			script = append(script, i*7+seed, i*5+seed*3, i*3)
		}
		f.Add(script)
	}
	scripts.Fuzz(f, 2000, func(t *testing.T, data scripts.Bytes) {
		trials := int(data.Byte()%12) + 1
		rules := Rules{AtMost: int(data.Byte()%4) + 1}
		if n := int(data.Byte() % 6); n < 4 {
			rules.MaxFailures = &n
		}
		fz := &fuzzed{t: t, m: New(trials, rules), rules: rules, now: time.Unix(1000, 0), running: map[int]bool{}}
		fz.step(Begin{fz.now})
		for !fz.finished && len(data) > 0 {
			fz.now = fz.now.Add(time.Duration(data.Byte()) * time.Second)
			trial := int(data.Byte()) % (trials + 1)
			switch data.Byte() % 10 {
			case 0:
				fz.step(Stop{Match: func(n int) bool { return n%3 == trial%3 }})
			case 1:
				fz.step(Retry{fz.now})
			case 2:
				fz.step(Cancel{})
				fz.cancelled = true
			default:
				fz.step(Ended{Trial: trial, State: []State{Succeeded, Failed, Cancelled}[data.Byte()%3], Now: fz.now})
				delete(fz.running, trial)
			}
			fz.check()
		}
		for trial := range trials { // end all running trials
			for n := 0; fz.running[trial] && n < trials; n++ {
				delete(fz.running, trial)
				fz.step(Ended{Trial: trial, State: Succeeded, Now: fz.now})
			}
		}
		for trial := 0; !fz.finished; trial = (trial + 1) % trials {
			if fz.running[trial] {
				delete(fz.running, trial)
				fz.step(Ended{Trial: trial, State: Succeeded, Now: fz.now})
			} else if len(fz.running) == 0 {
				t.Fatal("the sweep does not end although nothing runs")
			}
		}
		fz.checkEnd()
	})
}

type fuzzed struct {
	t                   *testing.T
	m                   *Machine
	rules               Rules
	now                 time.Time
	running             map[int]bool
	cancelled, finished bool
}

func (f *fuzzed) step(e Event) {
	twin, err := Resume(f.m.Snapshot(), f.rules)
	if err != nil {
		f.t.Fatal(err)
	}
	twin.cancelled, twin.over = f.m.cancelled, f.m.over // a cancelled or finished sweep does not continue as new
	if ended, ok := e.(Ended); ok && f.running[ended.Trial] {
		defer func() { _ = ended }()
		delete(f.running, ended.Trial)
	}
	actions := f.m.Step(e)
	if got := twin.Step(e); !reflect.DeepEqual(actions, got) {
		f.t.Fatalf("after %T: %v, and in the next execution %v", e, actions, got)
	}
	for _, a := range actions {
		switch a := a.(type) {
		case Start:
			if f.running[a.Trial] || f.cancelled {
				f.t.Fatalf("trial %d is started while it runs, or after a cancellation", a.Trial)
			}
			f.running[a.Trial] = true
		case Interrupt:
			if !f.running[a.Trial] {
				f.t.Fatalf("trial %d is interrupted and does not run", a.Trial)
			}
		case Finish:
			if f.finished || len(f.running) > 0 {
				f.t.Fatalf("the sweep ends twice, or before %v", f.running)
			}
			f.finished = true
		}
	}
}

func (f *fuzzed) check() {
	s := f.m.Status(f.now)
	if s.Running != len(f.running) || s.Running > f.rules.AtMost {
		f.t.Fatalf("%d run, %d are allowed, and the status says %d", len(f.running), f.rules.AtMost, s.Running)
	}
	if s.Pending > 0 && s.Running < f.rules.AtMost {
		f.t.Fatalf("%d wait although only %d run", s.Pending, s.Running)
	}
	if sum := s.Pending + s.Running + s.Ended() + s.Skipped; sum != s.Trials || len(s.FailedTrials) != s.Failed {
		f.t.Fatalf("the numbers disagree: %+v", s)
	}
}

func (f *fuzzed) checkEnd() {
	s := f.m.Status(f.now)
	want := spec.VerdictSucceeded
	switch {
	case s.Failed > 0:
		want = spec.VerdictFailed
	case f.cancelled:
		want = spec.VerdictCancelled
	}
	if got := f.m.Verdict(); got != want {
		f.t.Fatalf("%s instead of %s: %+v", got, want, s)
	}
	if f.m.Step(Retry{f.now}) != nil {
		f.t.Fatal("something follows the end")
	}
}
