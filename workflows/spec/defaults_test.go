package spec

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWithDefaults_SEED01(t *testing.T) {
	s := &RunSpec{Command: []string{"x"}, Tasks: []TaskGroup{{Type: "worker"}, {Type: "ps", Addresses: []string{"h:1"}}}}
	d := s.WithDefaults()
	require.Equal(t, &RunSpec{
		Command:           []string{"x"},
		Tasks:             []TaskGroup{{Type: "worker", Count: new(1)}, {Type: "ps", Addresses: []string{"h:1"}}},
		RPCLayer:          "grpc",
		RecordSource:      new(true),
		DependenceOnChief: new(true), PythonStacks: new(true),
		ChiefGrace:       new(DefaultChiefGrace),
		OnFailure:        OnFailureStop,
		RestartScope:     RestartScopeTask,
		PlacementTimeout: new(DefaultPlacementTimeout),
		Priority:         new(3),
		Preemption:       Preemption{Notice: new(DefaultPreemptNotice)},
		RequeueOn:        []RequeueOn{RequeueOnPreemption},
		Hosts:            Hosts{Strategy: StrategyPack},
		Elastic:          Elastic{JoinWait: new(DefaultJoinWait), Grow: GrowNever},
		Barriers:         BarriersServer,
		Stop:             Stop{Signal: "SIGTERM", Grace: new(DefaultStopGrace), ErrorGrace: new(DefaultErrorGrace)},
		StopTogether:     StopTogether{Grace: new(DefaultTogetherGrace), CleanErrors: []string{"OutOfRangeError", "StopIteration", "EOFError", "EOF"}},
		Closures:         Closures{QueueSize: new(DefaultQueueSize)},
		Logs:             Logs{Redirects: "3", Tee: "3", Prefix: new(DefaultPrefix)},
		EnvProfiles:      []EnvProfile{EnvTensorFlow, EnvTorch, EnvJAX},
	}, d)
	assert.False(t, d.AutoRestart)
	assert.Nil(t, d.MaxRunTime, "no limit (SEED-01)")
	assert.Nil(t, d.Timeout)
	assert.Nil(t, d.Closures.TransientFailures, "the variable says it (SEED-53)")
	assert.Nil(t, d.MaxRestarts, "unlimited (SEED-17)")
	require.Equal(t, d, d.WithDefaults(), "a second time changes nothing")
}

func TestWithDefaultsKeepsWhatIsGiven(t *testing.T) {
	s := &RunSpec{
		RecordSource: new(false), DependenceOnChief: new(false), PythonStacks: new(false), ChiefGrace: DurationOf(0), PlacementTimeout: DurationOf(1),
		Stop: Stop{Signal: "KILL", Grace: DurationOf(0), ErrorGrace: DurationOf(0)}, StopTogether: StopTogether{Grace: DurationOf(0), CleanErrors: []string{}}, EnvProfiles: []EnvProfile{},
		Logs: Logs{Redirects: "0", Tee: "1", Prefix: new("x")}, OnFailure: OnFailureContinue, RPCLayer: "x", RestartScope: RestartScopeGroup,
		Priority: new(1), Preemption: Preemption{Notice: DurationOf(0)}, RequeueOn: []RequeueOn{}, Hosts: Hosts{Strategy: StrategySpread}, Elastic: Elastic{JoinWait: DurationOf(0), Grow: GrowNextGeneration}, Barriers: BarriersLocal, Closures: Closures{QueueSize: new(0), TransientFailures: new(0)},
	}
	d := s.WithDefaults()
	want := *s
	want.Stop.Signal = "SIGKILL" // the canonical name
	require.Equal(t, &want, d)
	for given, want := range map[string]string{"TERM": "SIGTERM", "SIGPOLL": "SIGIO", "IOT": "SIGABRT", "nonsense": "nonsense"} {
		assert.Equal(t, want, (&RunSpec{Stop: Stop{Signal: given}}).WithDefaults().Stop.Signal)
	}
}

// No slice, map or pointer of the copy is one of the original.
func TestWithDefaultsIsDeep(t *testing.T) {
	for _, d := range documents(t, "good") {
		s, err := d.decode()
		require.NoError(t, err)
		requireApart(t, reflect.ValueOf(s), reflect.ValueOf(s.WithDefaults()), "spec")
	}
}

func requireApart(t *testing.T, a, b reflect.Value, path string) {
	t.Helper()
	switch a.Kind() {
	case reflect.Pointer:
		if !a.IsNil() {
			require.NotEqual(t, a.Pointer(), b.Pointer(), path)
			requireApart(t, a.Elem(), b.Elem(), path)
		}
	case reflect.Struct:
		for i := range a.NumField() {
			requireApart(t, a.Field(i), b.Field(i), path+"."+a.Type().Field(i).Name)
		}
	case reflect.Slice:
		for i := range a.Len() {
			require.NotEqual(t, a.Pointer(), b.Pointer(), path)
			requireApart(t, a.Index(i), b.Index(i), path+"[]")
		}
	case reflect.Map:
		if !a.IsNil() {
			require.NotEqual(t, a.Pointer(), b.Pointer(), path)
		}
		for _, k := range a.MapKeys() {
			requireApart(t, a.MapIndex(k), b.MapIndex(k), path+"{}")
		}
	}
}
