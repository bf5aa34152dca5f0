package closure

import (
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/tests/scripts"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// SEED-34: the queue uses the spec's settings, and the seed's variable as the default.
func TestQueueInput(t *testing.T) {
	run := spec.RunRef{WorkflowID: "iris", RunID: "first"}
	chief := func(env spec.Env) []spec.TaskGroup {
		return []spec.TaskGroup{{Type: "worker", Count: new(2)}, {Type: "chief", Env: env}}
	}
	set := func(value string) spec.Env { return spec.Env{spec.EnvTransientFailures: {Value: value}} }
	for name, test := range map[string]struct {
		spec  spec.RunSpec
		env   string // environment of the process that opens the queue
		size  int
		times *int
	}{
		"nothing":                  {spec.RunSpec{}, "", 0, nil},
		"a limit of 2":             {spec.RunSpec{Closures: spec.Closures{QueueSize: new(2)}}, "", 2, nil},
		"no limit":                 {spec.RunSpec{Closures: spec.Closures{QueueSize: new(0)}}, "", -1, nil},
		"failures":                 {spec.RunSpec{Closures: spec.Closures{TransientFailures: new(7)}}, "5", 0, new(7)},
		"none":                     {spec.RunSpec{Closures: spec.Closures{TransientFailures: new(0)}, Env: set("5")}, "5", 0, new(0)},
		"the opener's variable":    {spec.RunSpec{}, "5", 0, new(5)},
		"a negative one":           {spec.RunSpec{}, "-1", 0, new(0)},
		"the spec's variable":      {spec.RunSpec{Env: set("4")}, "5", 0, new(4)},
		"the chief's":              {spec.RunSpec{Env: set("4"), Tasks: chief(set("6"))}, "5", 0, new(6)},
		"the run's, for the chief": {spec.RunSpec{Env: set("4"), Tasks: chief(nil)}, "5", 0, new(4)},
		"empty at the chief":       {spec.RunSpec{Env: set("4"), Tasks: chief(set(""))}, "5", 0, new(5)},
		"another task's":           {spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "worker", Env: set("4")}}}, "", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			env := func(name string) string { return map[string]string{spec.EnvTransientFailures: test.env}[name] }
			for _, s := range []*spec.RunSpec{&test.spec, test.spec.WithDefaults()} {
				in := must.Get(NewQueueInput(s, run, env))(t)
				assert.Equal(t, QueueInput{Run: run, QueueSize: test.size, TransientUnavailable: test.times}, in)
			}
		})
	}
	in, err := NewQueueInput(&spec.RunSpec{Closures: spec.Closures{QueueSize: new(2)}}, run, func(string) string { return "three" })
	require.EqualError(t, err, `TF_COORDINATOR_IGNORE_TRANSIENT_PS_FAILURES="three" is not a whole number; write, for example, 3`)
	assert.Equal(t, QueueInput{Run: run, QueueSize: 2}, in)
}

func TestPlainValue(t *testing.T) {
	for in, want := range map[string]string{
		`{"b": 1, "a": 2}`: `{"b": 1, "a": 2}`,
		`null`:             `null`,
		`{"$clusterrun.tuple":[1,{"x":{"$clusterrun.tuple":["<",12345678901234567890]}},[]]}`: `[1,{"x":["<",12345678901234567890]},[]]`,
		`{"$clusterrun.tuple":[1],"more":2}`:                                                  `{"$clusterrun.tuple":[1],"more":2}`,
		`{"$clusterrun.tuple":`:                                                               `{"$clusterrun.tuple":`,
	} {
		assert.Equal(t, want, string(PlainValue(json.RawMessage(in))))
	}
}

var update = flag.Bool("update", false, "write the golden file instead of comparing with it")

// TestContract compares every name on the wire with the golden file, like package spec's test.
func TestContract(t *testing.T) {
	const path = "testdata/contract.golden"
	got := scripts.Contract(t, "", []reflect.Type{
		reflect.TypeFor[QueueInput](),
		reflect.TypeFor[SyncRequest](),
		reflect.TypeFor[SyncAnswer](),
		reflect.TypeFor[ServingMessage](),
		reflect.TypeFor[Batch](),
		reflect.TypeFor[BatchResult](),
		reflect.TypeFor[EndInput](),
		reflect.TypeFor[CheckInput](),
		reflect.TypeFor[CheckOutput](),
		reflect.TypeFor[QueueStatus](),
		reflect.TypeFor[QueueResult](),
	})
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to make it")
	require.Equal(t, string(want), got, "if this change is meant, run the test with -update")
}
