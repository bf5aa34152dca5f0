package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// datasets runs the scenarios that need only workers.
func (c *chief) datasets(t *testing.T) {
	for _, s := range []struct{ ids, name string }{
		{"CC-17", "each_iterator_begins_anew"},
		{"CC-19", "a_mapped_dataset"},
		{"CC-20 SEED-57", "a_builder_that_shares"},
		{"CC-21", "shuffled_differently"},
		{"CC-27 CC-26", "data_for_a_dataset"},
		{"CC-28", "two_datasets"},
		{"CC-52", "schedule_with_a_dataset"},
	} {
		t.Run(s.ids+" "+s.name, func(t *testing.T) { c.does(t, s.name) })
	}
}

// Datasets of each worker, on five of them, as in the seed.
func TestPerWorkerDatasets(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	c := f.coordinated(spec.RunSpec{AutoRestart: true}, f.serving("worker", 5))
	t.Run("CC-13 a part for each", func(t *testing.T) {
		assert.Equal(t, []any{5.0, 7.0, 9.0, 11.0, 13.0}, c.does(t, "a_shard_of_each_worker"))
	})
	c.datasets(t)
	t.Run("CC-64 CC-65 a worker dies amid building", func(t *testing.T) { c.does(t, "a_worker_dies_amid_building", "cc64") })
	c.succeeds()
}

// CC-31: workers that begin one after the other, as the environment asks for, bring the
// same results. Worker-0 does not wait, and the others no longer than the maximum.
func TestWorkersThatBeginLater(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	workers := f.serving("worker", 3)
	workers.Env["TF_COORDINATOR_SCHEDULE_START_DELAY"] = spec.Variable{Value: "2"}
	workers.Env["TF_COORDINATOR_SCHEDULE_START_DELAY_MAX"] = spec.Variable{Value: "4"}
	c := f.coordinated(spec.RunSpec{AutoRestart: true}, workers)
	for _, name := range []string{"nested_values", "a_list_of_values", "schedule_and_join", "per_worker_values", "arguments_that_are_refused"} {
		c.does(t, name)
	}
	c.does(t, "a_shard_of_each_worker")
	c.datasets(t)
	c.succeeds()
}
