package lifecycle

import (
	"testing"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestRestartPolicy(t *testing.T) {
	two := 2
	auto := RestartPolicy{AutoRestart: true}
	never := RestartPolicy{}
	budget := RestartPolicy{AutoRestart: true, MaxRestarts: &two}
	quick := func(c spec.Cause) Attempt { return Attempt{Cause: c, Lived: time.Second} }
	origin, lost, operator := quick(spec.CauseOrigin), quick(spec.CauseHostLost), quick(spec.CauseOperator)
	long := Attempt{Cause: spec.CauseOrigin, Lived: time.Hour}
	restart := Attempt{Cause: spec.CauseOperator, OperatorRestart: true, Lived: time.Second}

	for _, c := range []struct {
		name     string
		policy   RestartPolicy
		attempts []Attempt
		want     time.Duration // 0 means no restart
	}{
		{"exit 0 is final, with auto_restart too", auto, []Attempt{quick(spec.CauseCompleted)}, 0},
		{"exit 0 after restart-task came too late", never, []Attempt{{Cause: spec.CauseCompleted, OperatorRestart: true}}, 0},
		{"a failure without auto_restart", never, []Attempt{origin}, 0},
		{"the first failure: at once, but never 0", auto, []Attempt{origin}, time.Millisecond},
		{"the second quick one waits", auto, []Attempt{origin, origin}, 100 * time.Millisecond},
		{"and then twice as long", auto, []Attempt{origin, origin, origin}, 200 * time.Millisecond},
		{"not for ever longer", auto, repeat(origin, 9), 10 * time.Second},
		{"not after a thousand either", auto, repeat(origin, 1000), 10 * time.Second},
		{"a process that lived a minute makes it start anew", auto, []Attempt{origin, origin, origin, long}, time.Millisecond},
		{"and counts no more for the next", auto, []Attempt{origin, origin, long, origin}, time.Millisecond},
		{"the budget: not used up", budget, []Attempt{origin, origin}, 100 * time.Millisecond},
		{"the budget: used up", budget, []Attempt{origin, origin, origin}, 0},
		{"the budget: long lives count too", budget, []Attempt{long, long, long}, 0},
		{"no budget at all", RestartPolicy{AutoRestart: true, MaxRestarts: new(int)}, []Attempt{origin}, 0},
		{"terminated tasks come back, uncounted (MPR-22)", budget, []Attempt{operator, operator, operator, operator}, time.Millisecond},
		{"not without auto_restart", never, []Attempt{operator}, 0},
		{"restart-task needs no auto_restart", never, []Attempt{restart}, time.Millisecond},
		{"and is at once, whatever came before", auto, append(repeat(origin, 9), restart), time.Millisecond},
		{"and not counted", budget, []Attempt{origin, restart, restart, restart, origin}, time.Millisecond},
		{"a lost host: again, uncounted", budget, []Attempt{lost, lost, lost, lost}, 400 * time.Millisecond},
		{"a lost host without auto_restart", never, []Attempt{lost}, 0},
		{"what the run stopped stays stopped", auto, []Attempt{quick(spec.CauseCollateral)}, 0},
		{"what was stopped for its silence is a failure like any other", auto, []Attempt{quick(spec.CauseSilence), quick(spec.CauseSilence)}, 100 * time.Millisecond},
		{"and is counted", budget, repeat(quick(spec.CauseSilence), 3), 0},
		{"what ran out of time as well", auto, []Attempt{quick(spec.CauseTimeout)}, 0},
		{"nothing to start again", auto, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			history := HistoryOf(c.attempts)
			delay, again := c.policy.Next(history)
			if delay != c.want || again != (c.want > 0) {
				t.Errorf("Next(%+v) = %s, %t; want %s", history, delay, again, c.want)
			}
			history.Sealed = true
			if delay, again := c.policy.Next(history); again {
				t.Errorf("a sealed task is started again after %s", delay)
			}
		})
	}
}

// A cause of failure restarts a task in one scope if and only if it restarts the group in the
// other.
func TestScopesRestartTheSameFailures(t *testing.T) {
	for _, c := range spec.Causes {
		if !c.Cause.ByItself() {
			continue
		}
		_, task := RestartPolicy{AutoRestart: true}.Next(HistoryOf([]Attempt{{Cause: c.Cause}}))
		group := (&Machine{account: account{spec: &spec.RunSpec{RestartScope: spec.RestartScopeGroup}}, phase: running}).mayRegroup(c.Cause)
		if want := c.Cause != spec.CauseLogQuota; task != want || group != want {
			t.Errorf("%s: restarts the task: %t, the group: %t; want %t for both", c.Cause, task, group, want)
		}
	}
}

func repeat(a Attempt, n int) []Attempt {
	var all []Attempt
	for range n {
		all = append(all, a)
	}
	return all
}
