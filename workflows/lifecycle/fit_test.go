package lifecycle

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The largest run, with everything as long as hosts let it be, has a result
// that the server takes: over 2 MiB it would kill the run.
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

// Of the tasks of a result that is still too large those are left out that completed, and
// of the others the last ones.
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
	if s := size(&few); s > 201_000 || s < 150_000 {
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

// The least needed parts are left out first.
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
