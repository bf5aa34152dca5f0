package e2e

import (
	"testing"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// A Python chief coordinates Python workers, as in a run of a user.
func TestPythonChief(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.coordinated(spec.RunSpec{AutoRestart: true}, f.serving("worker", 2))
	for _, s := range []struct {
		ids, name string
		args      []any
	}{
		{"CC-15", "nested_values", nil},
		{"CC-16", "a_list_of_values", nil},
		{"CC-18", "schedule_and_join", nil},
		{"CC-22", "per_worker_values", nil},
		{"CC-24 CC-25", "arguments_that_are_refused", nil},
		{"CC-44", "two_variables", nil},
		{"SEED-43 SEED-44", "statuses", []any{"statuses"}},
		{"CC-32 CC-35 CC-36", "join_raises", nil},
		{"CC-33", "schedule_raises", nil},
		{"CC-34", "schedule_raises_one_of_many", nil},
		{"CC-07", "done_raises", nil},
		{"CC-37 CC-38", "input_error", nil},
		{"CC-39", "cancellation", []any{"very-long"}},
		{"SEED-36 SEED-37", "the_first_error", nil},
		{"CC-40", "a_resource_after_an_error", nil},
		{"CC-63", "an_error_while_a_worker_is_away", []any{"away"}},
		{"CC-61", "between_functions", nil},
		{"CC-62", "amid_functions", []any{"amid"}},
		{"CC-72 CC-87", "a_value_outlives_its_worker", []any{"worker-0", "worker-1"}},
	} {
		t.Run(s.ids+" "+s.name, func(t *testing.T) { c.does(t, s.name, s.args...) })
	}
	c.succeeds()
}
