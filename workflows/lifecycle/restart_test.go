package lifecycle

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
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
		{"terminated tasks come back, uncounted", budget, []Attempt{operator, operator, operator, operator}, time.Millisecond},
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

// The state of a run with a thousand tasks and long messages keeps only what fits.
func TestStatesAreBounded(t *testing.T) {
	for _, words := range []int{10, 1024} {
		s := (&spec.RunSpec{Command: []string{"x"}, RestartScope: spec.RestartScopeGroup, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(1000)}}}).WithDefaults()
		m := New(s, s.TaskList())
		m.Step(Begin{})
		for _, task := range s.TaskList() {
			m.Step(TaskEnded{Task: task.Name(), Exit: &spec.Exit{
				ExitCode: 1, Cause: spec.CauseOrigin, Message: strings.Repeat("w", words),
				LogDir: "/home/ann/.local/state/clusterrun/logs/iris/ee3875a0e2c9/attempt_0/0",
			}})
		}
		state := m.State()
		require.LessOrEqual(t, shorten.Size(state), maxState)
		assert.Equal(t, "worker-999", state.Tasks[999].Of)
		assert.NotEmpty(t, state.Tasks[999].Earlier)
		assert.Equal(t, 1, state.Group.Generation)
		assert.Equal(t, 1, state.Group.Counted)
	}
}

// The largest run, with everything as long as hosts allow, has a result that the server accepts:
// over 2 MiB it would kill the run.
func TestResultFits(t *testing.T) {
	const count = 1000
	s := (&spec.RunSpec{
		Command: []string{"true"}, OnFailure: spec.OnFailureContinue,
		Tasks: []spec.TaskGroup{{Type: strings.Repeat("w", 63), Count: new(count)}},
	}).WithDefaults()
	m := New(s, s.TaskList())
	m.Step(Begin{})
	released := Released{Exits: map[string][]spec.Exit{}, Values: map[string][]byte{}, Hosts: map[string]string{}}
	words := strings.Repeat("é\"\n", 256)
	for _, name := range m.Live() {
		for i := range 10 {
			released.Exits[name] = append(released.Exits[name], spec.Exit{
				Restart: i, PID: 12345, ExitCode: -11, Signal: "SIGSEGV", Cause: spec.CauseOrigin,
				BootNanos: 1 << 60, Message: words, Reported: true,
				ErrorFile: "/" + strings.Repeat("d", 120) + "/error.json", LogDir: "/" + strings.Repeat("d", 120),
			})
		}
		released.Values[name] = []byte(`"` + strings.Repeat("v", 2000) + `"`)
		released.Hosts[name] = strings.Repeat("h", 60)
		m.Step(TaskEnded{Task: name, Exit: &released.Exits[name][9]})
	}
	actions := m.Step(released)
	result := actions[0].(Finish).Result
	data, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	if limit := 3 << 19; len(data) > limit {
		t.Errorf("the result has %d bytes, over %d", len(data), limit)
	}
	if len(result.Tasks) != count {
		t.Errorf("%d tasks in the result, want %d", len(result.Tasks), count)
	}
	if result.FirstFailure.Message != words {
		t.Error("the root cause was cut")
	}
	if result.LeftOut == nil || len(result.LeftOut.Values) != 100 {
		t.Error("values were left out without a word")
	}
}

// If a result is still too large, completed tasks are omitted first, and then the last of the
// remaining ones.
func TestTasksAreLeftOut(t *testing.T) {
	var r spec.RunResult
	for i := range spec.MaxTasks {
		cause := spec.CauseCompleted
		if i%4 == 0 {
			cause = spec.CauseOrigin
		}
		r.Tasks = append(r.Tasks, spec.TaskResult{
			Name: spec.TaskName("worker", i), Type: "worker", Index: i, Rank: i, Host: "host-a",
			Exit: &spec.Exit{Cause: cause, PID: 4711, LogDir: strings.Repeat("d", 200)},
		})
	}
	few := r
	fit(&few, 200_000)
	if s := shorten.Size(&few); s > 201_000 || s < 150_000 {
		t.Errorf("%d bytes", s)
	}
	if first := few.Tasks[0]; first.Name != "worker-0" || first.Exit.Cause != spec.CauseOrigin {
		t.Errorf("the first is %v", first)
	}
	for _, task := range few.Tasks {
		if task.Exit.Cause != spec.CauseOrigin {
			t.Errorf("%s completed, and is not left out", task.Name)
		}
	}
	if few.LeftOut == nil || few.LeftOut.Tasks != spec.MaxTasks-len(few.Tasks) {
		t.Errorf("%+v, and %d tasks are there", few.LeftOut, len(few.Tasks))
	}
}

// The least important parts are omitted first.
func TestFitOrder(t *testing.T) {
	long := strings.Repeat("x", 1000)
	make := func() *spec.RunResult {
		exit := spec.Exit{Message: long, Cause: spec.CauseOrigin}
		return &spec.RunResult{
			FirstFailure: &spec.Failure{Exit: spec.Exit{Message: long}},
			Tasks: []spec.TaskResult{{
				Name: "worker-0", Exit: &exit, Exits: []spec.Exit{exit, exit}, Value: json.RawMessage(`"` + long + `"`),
				Failed: true,
			}},
		}
	}
	for _, c := range []struct {
		limit int
		want  string
	}{
		{1 << 20, "message 1000, exits 2, value true"},
		{5000, "message 400, exits 2, value true"},
		{3300, "message 100, exits 2, value true"},
		{2600, "message 100, exits 0, value true"},
		{1700, "message 100, exits 0, value false"},
		{1360, "message 0, exits 0, value false"},
	} {
		r := make()
		fit(r, c.limit)
		task := r.Tasks[0]
		got := fmt.Sprintf("message %d, exits %d, value %t",
			len(task.Exit.Message), len(task.Exits), task.Value != nil)
		if got != c.want {
			t.Errorf("limit %d: %s; want %s", c.limit, got, c.want)
		}
		if r.FirstFailure.Message != long {
			t.Errorf("limit %d: the root cause was cut", c.limit)
		}
	}
}
