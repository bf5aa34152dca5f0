package sweep_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// Only trials that are one process each, and need no run of their own, are batched.
func TestQuick(t *testing.T) {
	for _, test := range []struct {
		run   string
		quick bool
	}{
		{`{"command": ["true"], "tasks": [{"type": "worker"}]}`, true},
		{`{"name": "x", "command": ["a"], "dir": "/{n}", "env": {"A": "{n}"}, "priority": 3, "tasks": [{"type": "worker", "count": 1, "args": ["{n}"], "stop": {"grace": "1s"}}]}`, true},
		{`{"command": ["true"], "tasks": [{"type": "worker"}], "logs": {"dir": "/logs", "tee": "3"}, "python_stacks": false}`, true},
		{`{"command": ["true"], "tasks": [{"type": "worker", "count": 2}]}`, false},
		{`{"command": ["true"], "tasks": [{"type": "chief"}, {"type": "worker"}]}`, false},
		{`{"command": ["true"], "tasks": [{"type": "worker", "addresses": ["a:1"]}]}`, false},
		{`{"command": ["true"], "tasks": [{"type": "worker", "gpus_per_task": 1}]}`, false},
		{`{"command": ["true"], "tasks": [{"type": "worker"}], "gpus_per_task": 1}`, false},
		{`{"command": ["true"], "tasks": [{"type": "worker"}], "auto_restart": true}`, false},
		{`{"command": ["true"], "tasks": [{"type": "worker"}], "timeout": "1m"}`, false},
		{`{"command": ["true"], "tasks": [{"type": "worker"}], "max_run_time": "1m"}`, false},
		{`{"command": ["true"], "tasks": [{"type": "worker"}], "requeue_on": ["timeout"]}`, false},
		{`{"command": ["true"], "tasks": [{"type": "worker"}], "notify": {"webhook": "https://example.com"}}`, false},
		{`{"command": ["true"], "tasks": [{"type": "worker"}], "hosts": {"exclusive": true}}`, false},
		{`{"command": ["true"], "tasks": [{"type": "worker"}], "limits": {"memory": "1GiB"}}`, false},
		{`{"command": ["true"], "tasks": [{"type": "worker"}], "logs": {"quota": "1MiB"}}`, false},
		{`{"command": ["true"], "tasks": [{"type": "worker"}], "silence": "1m"}`, false},
	} {
		s := must.JSON[spec.RunSpec](t, test.run)
		assert.Equal(t, test.quick, sweep.Quick(&s), test.run)
	}
}

// The tasks of a batch are exactly the trials.
func TestBatchHasTheTasksOfItsTrials(t *testing.T) {
	grid := must.Get(sweep.ProductGrid("a=0..3 b=x,'y z'"))(t)
	s := sweep.Spec{Rules: sweep.Rules{AtMost: 1}, Grid: grid, Run: &spec.RunSpec{
		Command: []string{"echo", "{a}"}, Dir: "/{b}", Env: spec.Env{"A": {Value: "{a}"}, "SAME": {Value: "1"}},
		Tasks: []spec.TaskGroup{{Type: "worker", Args: []string{"{trial}"}, Env: spec.Env{"B": {Value: "{b}"}}}},
	}}
	trials := must.Get(s.Check("hp"))(t)
	assert.Positive(t, s.Rules.Batch)
	batch := must.Get(s.BatchOf(trials, "hp", 2, 4, nil))(t)
	require.NoError(t, batch.Validate())
	tasks := batch.TaskList()
	require.Len(t, tasks, 4)
	for i, got := range tasks {
		one := must.Get(s.Trial(trials, "hp", 2+i))(t)
		want := one.TaskList()[0]
		want.Index, want.Rank = i, i
		assert.Equal(t, want, got)
	}
	id := spec.BatchID("hp", 2, 4)
	assert.Equal(t, "hp.2-5", id)
	of, first, count, ok := spec.SplitTrialsID(id)
	assert.Equal(t, []any{"hp", 2, 4, true}, []any{of, first, count, ok})
	for _, other := range []string{"hp", "hp.2-2", "hp.2-1", "hp.02-5", "hp.2-05", "hp.2-5-6", ".2-5", "hp-5"} {
		_, _, _, ok := spec.SplitTrialsID(other)
		assert.False(t, ok, other)
	}
}

// Long commands make batches small: the spec of a batch has a bound.
func TestBatchesAreBoundedInBytes(t *testing.T) {
	grid := must.Get(sweep.ProductGrid("n=0..999"))(t)
	s := sweep.Spec{Rules: sweep.Rules{AtMost: 1}, Grid: grid, Run: &spec.RunSpec{
		Command: []string{"echo", fmt.Sprint(slices.Repeat([]int{7}, 10_000), "{n}")}, Tasks: []spec.TaskGroup{{Type: "worker"}},
	}}
	trials := must.Get(s.Check("hp"))(t)
	assert.Equal(t, 4, s.Rules.Batch)
	batch := must.Get(s.BatchOf(trials, "hp", 990, s.Rules.Batch, nil))(t)
	text := must.Get(json.Marshal(batch))(t)
	assert.Less(t, len(text), 200<<10)
}
