package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SEED-34, SEED-53: what the spec says goes to the queue, and the seed's variable is the
// default.
func TestQueueInput(t *testing.T) {
	run := BarrierRun{WorkflowID: "iris", RunID: "first"}
	chief := func(env map[string]string) []TaskGroup {
		return []TaskGroup{{Type: "worker", Count: new(2)}, {Type: "chief", Env: env}}
	}
	set := func(value string) map[string]string { return map[string]string{EnvTransientFailures: value} }
	for name, test := range map[string]struct {
		spec  RunSpec
		env   string // of whoever opens the queue
		size  int
		times *int
	}{
		"nothing":                  {RunSpec{}, "", 0, nil},
		"a limit of 2":             {RunSpec{Closures: Closures{QueueSize: new(2)}}, "", 2, nil},
		"no limit":                 {RunSpec{Closures: Closures{QueueSize: new(0)}}, "", -1, nil},
		"failures":                 {RunSpec{Closures: Closures{TransientFailures: new(7)}}, "5", 0, new(7)},
		"none":                     {RunSpec{Closures: Closures{TransientFailures: new(0)}, Env: set("5")}, "5", 0, new(0)},
		"the opener's variable":    {RunSpec{}, "5", 0, new(5)},
		"a negative one":           {RunSpec{}, "-1", 0, new(0)},
		"the spec's variable":      {RunSpec{Env: set("4")}, "5", 0, new(4)},
		"the chief's":              {RunSpec{Env: set("4"), Tasks: chief(set("6"))}, "5", 0, new(6)},
		"the run's, for the chief": {RunSpec{Env: set("4"), Tasks: chief(nil)}, "5", 0, new(4)},
		"empty at the chief":       {RunSpec{Env: set("4"), Tasks: chief(set(""))}, "5", 0, new(5)},
		"another task's":           {RunSpec{Tasks: []TaskGroup{{Type: "worker", Env: set("4")}}}, "", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			env := func(name string) string { return map[string]string{EnvTransientFailures: test.env}[name] }
			for _, s := range []*RunSpec{&test.spec, test.spec.WithDefaults()} {
				in, err := s.QueueInput(run, env)
				require.NoError(t, err)
				assert.Equal(t, ClosureQueueInput{Run: run, QueueSize: test.size, TransientUnavailable: test.times}, in)
			}
		})
	}
	in, err := (&RunSpec{Closures: Closures{QueueSize: new(2)}}).QueueInput(run, func(string) string { return "three" })
	require.EqualError(t, err, `TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES="three" is no whole number; give one, such as 3`)
	assert.Equal(t, ClosureQueueInput{Run: run, QueueSize: 2}, in)
}
