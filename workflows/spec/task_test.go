package spec

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func cluster() *RunSpec {
	return &RunSpec{
		Command: []string{"python3", "train.py"},
		Dir:     "/run",
		Env:     EnvOf(map[string]string{"A": "run", "R": "run"}),
		Tasks: []TaskGroup{
			{Type: "chief"},
			{
				Type: "worker", Count: new(3), Args: []string{"--w"}, Dir: "/group", Env: EnvOf(map[string]string{"A": "group", "G": "group"}),
				Overrides: map[string]Override{
					"1": {Args: []string{"--one"}, Dir: "/one", Env: EnvOf(map[string]string{"A": "one"})},
					"2": {Command: []string{"./two"}, Args: []string{}},
				},
			},
			{Type: "ps", Addresses: []string{"h:1", "h:2"}, Command: []string{"./ps"}},
		},
	}
}

func TestTaskListIsInRankOrder(t *testing.T) {
	env := EnvOf(map[string]string{"A": "run", "R": "run"})
	group := EnvOf(map[string]string{"A": "group", "R": "run", "G": "group"})
	require.Equal(t, []Task{
		{Type: "chief", Index: 0, Rank: 0, Command: []string{"python3", "train.py"}, Dir: "/run", Env: env},
		{Type: "worker", Index: 0, Rank: 1, Command: []string{"python3", "train.py", "--w"}, Dir: "/group", Env: group},
		{Type: "worker", Index: 1, Rank: 2, Command: []string{"python3", "train.py", "--one"}, Dir: "/one", Env: EnvOf(map[string]string{"A": "one", "R": "run", "G": "group"})},
		{Type: "worker", Index: 2, Rank: 3, Command: []string{"./two"}, Dir: "/group", Env: group},
		{Type: "ps", Index: 0, Rank: 4, Address: "h:1", Command: []string{"./ps"}, Dir: "/run", Env: env},
		{Type: "ps", Index: 1, Rank: 5, Address: "h:2", Command: []string{"./ps"}, Dir: "/run", Env: env},
	}, cluster().TaskList())
	assert.Equal(t, cluster().TaskList(), cluster().WithDefaults().TaskList())
}

func TestTasksShareNothing(t *testing.T) {
	s := cluster()
	tasks := s.TaskList()
	tasks[1].Command[0], tasks[1].Env["A"] = "changed", Variable{Value: "changed"}
	require.Equal(t, cluster(), s)
	require.Equal(t, cluster().TaskList()[2:], tasks[2:])
}

func TestAddedTask_SEED12(t *testing.T) {
	s := cluster()
	one := must.Get(s.AddedTask(StartTaskRequest{Task: "worker-1"}))(t)
	want := s.TaskList()[2]
	want.Rank = 0
	assert.Equal(t, want, one, "a task of the spec is as the spec has it")

	beyond := must.Get(s.AddedTask(StartTaskRequest{Task: "worker-9", Env: EnvOf(map[string]string{"X": "1"})}))(t)
	assert.Equal(t, Task{
		Type: "worker", Index: 9, Command: []string{"python3", "train.py", "--w"}, Dir: "/group",
		Env: EnvOf(map[string]string{"A": "group", "R": "run", "G": "group", "X": "1"}),
	}, beyond, "an index outside the spec has what its type has")

	own := must.Get(s.AddedTask(StartTaskRequest{Task: "worker-0", Command: []string{"./other"}, Dir: "/d"}))(t)
	assert.Equal(t, []string{"./other"}, own.Command, "with a command of its own the default args are not used")
	assert.Equal(t, "/d", own.Dir)

	evaluator := must.Get(s.AddedTask(StartTaskRequest{Task: "evaluator-0", Args: []string{"--eval"}}))(t)
	assert.Equal(t, []string{"python3", "train.py", "--eval"}, evaluator.Command, "a type outside the spec takes the run's command")

	require.Equal(t, cluster(), s, "nobody else sees a changed spec")
}

func TestAddedTaskKeepsArgsUnlessGiven_SEED04(t *testing.T) {
	s := cluster()
	kept := must.Get(s.AddedTask(StartTaskRequest{Task: "worker-0"}))(t)
	assert.Equal(t, []string{"python3", "train.py", "--w"}, kept.Command)
	none := must.Get(s.AddedTask(StartTaskRequest{Task: "worker-0", Args: []string{}}))(t)
	assert.Equal(t, []string{"python3", "train.py"}, none.Command, "given and empty: none")
}

func TestAddedTaskNeedsACommand(t *testing.T) {
	s := &RunSpec{Tasks: []TaskGroup{{Type: "ps", Command: []string{"./ps"}}}}
	_, err := s.AddedTask(StartTaskRequest{Task: "evaluator-0"})
	require.ErrorContains(t, err, "add one")
	_, err = s.AddedTask(StartTaskRequest{Task: "evaluator"})
	require.ErrorContains(t, err, "is not a task name")
}

// An empty list differs from a missing list, and must reach the workflow unchanged.
func TestEmptyListsSurviveJSON(t *testing.T) {
	for _, v := range []any{Override{Args: []string{}}, StartTaskRequest{Args: []string{}}} {
		assert.Contains(t, toJSON(t, v), `"args":[]`)
	}
	assert.Contains(t, toJSON(t, RunSpec{EnvProfiles: []EnvProfile{}}), `"env_profiles":[]`)
	assert.NotContains(t, toJSON(t, RunSpec{}), "env_profiles")
}

func TestParseTaskName(t *testing.T) {
	for name, want := range map[string]Task{
		"worker-3": {Type: "worker", Index: 3}, "param-server-0": {Type: "param-server"}, "a_b-12": {Type: "a_b", Index: 12},
	} {
		typ, index, err := ParseTaskName(name)
		require.NoError(t, err)
		assert.Equal(t, want, Task{Type: typ, Index: index})
		assert.Equal(t, name, TaskName(typ, index))
	}
	for _, name := range []string{
		"", "worker", "worker-", "-1", "worker--1", "worker-01", "worker-+1", "worker-1 ", "Worker-1", "worker-1-0", "a b-1", "worker-99999999999999999999", "worker-x",
	} {
		_, _, err := ParseTaskName(name)
		assert.EqualError(t, err, Quote(name)+" is not a task name; write its type and index, such as worker-3")
	}
}

func TestWithDefaults_SEED01(t *testing.T) {
	s := &RunSpec{Command: []string{"x"}, Tasks: []TaskGroup{{Type: "worker"}, {Type: "ps", Addresses: []string{"h:1"}}}}
	d := s.WithDefaults()
	require.Equal(t, &RunSpec{
		Command:           []string{"x"},
		Tasks:             []TaskGroup{{Type: "worker", Count: new(1)}, {Type: "ps", Addresses: []string{"h:1"}}},
		RPCLayer:          "grpc",
		RecordSource:      new(true),
		DependenceOnChief: new(true), PythonStacks: new(true),
		ChiefGrace:        new(DefaultChiefGrace),
		OnFailure:         OnFailureStop,
		RestartScope:      RestartScopeTask,
		PlacementTimeout:  new(DefaultPlacementTimeout),
		Priority:          new(3),
		RequeueOn:         []RequeueOn{RequeueOnPreemption},
		Hosts:             Hosts{Strategy: StrategyPack},
		Elastic:           Elastic{JoinWait: new(DefaultJoinWait), Grow: GrowNever},
		Barriers:          BarriersServer,
		GiveUpOnSameError: new(DefaultSameErrors),
		Stop:              Stop{Signal: "SIGTERM", Grace: new(DefaultStopGrace), Scope: StopScopeProgram, ErrorGrace: new(DefaultErrorGrace)},
		StopTogether:      StopTogether{Grace: new(DefaultTogetherGrace), CleanErrors: []string{"OutOfRangeError", "StopIteration", "EOFError", "EOF"}},
		Closures:          Closures{QueueSize: new(DefaultQueueSize)},
		Logs:              Logs{Redirects: "3", Tee: "3", Prefix: new(DefaultPrefix)},
		EnvProfiles:       []EnvProfile{EnvTensorFlow, EnvTorch, EnvJAX},
		Silence:           DefaultSilence,
		OnSilence:         OnSilenceReport,
	}, d)
	assert.False(t, d.AutoRestart)
	assert.Nil(t, d.MaxRunTime, "no limit (SEED-01)")
	assert.Nil(t, d.Timeout)
	assert.Nil(t, d.Closures.TransientFailures, "the variable says it")
	assert.Nil(t, d.MaxRestarts, "unlimited")
	require.Equal(t, d, d.WithDefaults(), "a second time changes nothing")
}

func TestWithDefaultsKeepsWhatIsGiven(t *testing.T) {
	s := &RunSpec{
		RecordSource: new(false), DependenceOnChief: new(false), PythonStacks: new(false), ChiefGrace: DurationOf(0), PlacementTimeout: DurationOf(1),
		Stop: Stop{Signal: "KILL", Grace: DurationOf(0), Scope: StopScopeGroup, ErrorGrace: DurationOf(0)}, StopTogether: StopTogether{Grace: DurationOf(0), CleanErrors: []string{}}, EnvProfiles: []EnvProfile{},
		Logs: Logs{Redirects: "0", Tee: "1", Prefix: new("x")}, OnFailure: OnFailureContinue, RPCLayer: "x", RestartScope: RestartScopeGroup,
		GiveUpOnSameError: new(0), Priority: new(1), RequeueOn: []RequeueOn{}, Hosts: Hosts{Strategy: StrategySpread}, Elastic: Elastic{JoinWait: DurationOf(0), Grow: GrowNextGeneration}, Barriers: BarriersLocal, Closures: Closures{QueueSize: new(0), TransientFailures: new(0)},
	}
	d := s.WithDefaults()
	want := *s
	want.Stop.Signal = "SIGKILL" // the canonical name
	require.Equal(t, &want, d)
	for given, want := range map[string]string{"TERM": "SIGTERM", "SIGPOLL": "SIGIO", "IOT": "SIGABRT", "nonsense": "nonsense"} {
		assert.Equal(t, want, (&RunSpec{Stop: Stop{Signal: given}}).WithDefaults().Stop.Signal)
	}
}

// A run of several tasks watches silence unless its spec is set to never.
func TestSilenceByDefault(t *testing.T) {
	for _, c := range []struct {
		tasks         int
		silence, want Silence
		on, wantOn    OnSilence
	}{
		{1, "", "", "", ""}, {1, "1m", "1m", "", ""}, {2, "", DefaultSilence, "", OnSilenceReport}, {2, "1m", "1m", "", OnSilenceReport},
		{2, "", DefaultSilence, OnSilenceStop, OnSilenceStop}, {2, SilenceNever, SilenceNever, "", ""},
	} {
		s := &RunSpec{Command: []string{"x"}, Tasks: []TaskGroup{{Type: "worker", Count: &c.tasks}}, Silence: c.silence, OnSilence: c.on}
		require.NoError(t, s.Validate())
		d := s.WithDefaults()
		assert.Equal(t, c.want, d.Silence)
		assert.Equal(t, c.wantOn, d.OnSilence)
	}
	two := 2
	never := &RunSpec{Command: []string{"x"}, Tasks: []TaskGroup{{Type: "worker", Count: &two}}, Silence: SilenceNever, OnSilence: OnSilenceStop}
	assert.ErrorContains(t, never.Validate(), "on_silence: has no effect without silence")
}

// The copy does not share slices, maps or pointers with the original.
func TestWithDefaultsIsDeep(t *testing.T) {
	for _, d := range documents(t, "good") {
		s := must.Get(d.decode())(t)
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
