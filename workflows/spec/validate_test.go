package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// testdata/bad shows most rules. These are the rules that a document cannot break, and
// boundaries.

func oneWorker(change func(*RunSpec)) *RunSpec {
	s := &RunSpec{Command: []string{"./train"}, Tasks: []TaskGroup{{Type: "worker"}}}
	change(s)
	return s
}

func problemsOf(t *testing.T, s *RunSpec) []string {
	t.Helper()
	err := s.Validate()
	if err == nil {
		return nil
	}
	var invalid *InvalidSpecError
	require.ErrorAs(t, err, &invalid)
	var list []string
	for _, p := range invalid.Problems {
		assert.NotEmpty(t, p.Remedy)
		list = append(list, p.Path+": "+p.Message)
	}
	return list
}

func TestValidateNamesEveryProblem(t *testing.T) {
	cases := map[string]struct {
		change func(*RunSpec)
		want   []string
	}{
		"valid":              {func(*RunSpec) {}, nil},
		"argument not UTF-8": {func(s *RunSpec) { s.Command = []string{"x", "a\xff"} }, []string{`command[1]: "a�" is not valid UTF-8, and JSON would change it`}},
		"variable not UTF-8": {func(s *RunSpec) { s.Env = EnvOf(map[string]string{"A": "\xff"}) }, []string{`env.A: "�" is not valid UTF-8, and JSON would change it`}},
		"dir not UTF-8":      {func(s *RunSpec) { s.Dir = "/\xff" }, []string{`dir: "/�" is not valid UTF-8, and JSON would change it`}},
		"count overflows": {func(s *RunSpec) {
			s.Tasks = []TaskGroup{{Type: "a", Count: new(math.MaxInt)}, {Type: "b", Count: new(math.MaxInt)}}
		}, []string{"tasks: the run has 9223372036854775807 tasks; at most 10000 are allowed"}},
		"chiefs overflow": {func(s *RunSpec) {
			s.Tasks = []TaskGroup{{Type: "chief", Count: new(math.MinInt)}, {Type: "ps", Count: new(1)}}
		}, []string{"tasks[0].count: must be at least 1, not -9223372036854775808"}},
		"10000 tasks":           {func(s *RunSpec) { s.Tasks[0].Count = new(10_000) }, nil},
		"10001 tasks":           {func(s *RunSpec) { s.Tasks[0].Count = new(10_001) }, []string{"tasks: the run has 10001 tasks; at most 10000 are allowed"}},
		"largest argument":      {func(s *RunSpec) { s.Command = []string{"x", strings.Repeat("a", MaxStringBytes)} }, nil},
		"argument too long":     {func(s *RunSpec) { s.Command = []string{"x", strings.Repeat("a", MaxStringBytes+1)} }, []string{"command[1]: has 131072 bytes; Linux accepts up to 131071 in one argument or variable"}},
		"largest variable":      {func(s *RunSpec) { s.Env = EnvOf(map[string]string{"A": strings.Repeat("a", MaxStringBytes-2)}) }, nil},
		"variable too long":     {func(s *RunSpec) { s.Env = EnvOf(map[string]string{"A": strings.Repeat("a", MaxStringBytes-1)}) }, []string{"env.A: has 131072 bytes; Linux accepts up to 131071 in one argument or variable"}},
		"ten years":             {func(s *RunSpec) { s.Timeout = new(MaxDuration) }, nil},
		"more than ten years":   {func(s *RunSpec) { s.Timeout = new(MaxDuration + 1) }, []string{"timeout: must be at most ten years (87600h), not 87600h0m0.000000001s"}},
		"timeout 0":             {func(s *RunSpec) { s.Timeout = DurationOf(0) }, nil},
		"chief_grace 0":         {func(s *RunSpec) { s.ChiefGrace = DurationOf(0) }, nil},
		"stop.grace 0 (TR-113)": {func(s *RunSpec) { s.Stop.Grace = DurationOf(0) }, nil},
		"stop.grace < 0 (TR-112)": {
			func(s *RunSpec) { s.Stop.Grace = DurationOf(-time.Second) }, []string{"stop.grace: must be 0s or more, not -1s"},
		},
		"no restarts": {func(s *RunSpec) { s.MaxRestarts = new(0) }, nil},
		"name of 100": {func(s *RunSpec) { s.Name = strings.Repeat("n", 100) }, nil},
		"name of 101": {func(s *RunSpec) { s.Name = strings.Repeat("n", 101) }, []string{`name: "` + strings.Repeat("n", 60) + `…" is not a valid name`}},
		"name with a newline": {
			func(s *RunSpec) { s.Name = "a\n" }, []string{`name: "a\n" is not a valid name`},
		},
		"type of 64": {func(s *RunSpec) { s.Tasks[0].Type = strings.Repeat("a", 64) }, []string{`tasks[0].type: "` + strings.Repeat("a", 60) + `…" is not a task type`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, problemsOf(t, oneWorker(c.change))) })
	}
}

func TestValidateBoundsTheSpec(t *testing.T) {
	s := oneWorker(func(s *RunSpec) {
		for range 10 {
			s.Command = append(s.Command, strings.Repeat("<", 20_000)) // six bytes each in Go's JSON
		}
	})
	require.Equal(t, []string{": the spec takes 1200081 bytes as JSON; it must be smaller than 1048576 bytes"}, problemsOf(t, s))
}

func TestValidateBoundsArgvAndEnvironment(t *testing.T) {
	many := func(n int) []string { return append([]string{"./x"}, make([]string, n)...) }
	fits := MaxExecBytes/execOverhead - 20
	require.Empty(t, problemsOf(t, oneWorker(func(s *RunSpec) { s.Command = many(fits) })))
	require.Equal(t, []string{"tasks[0]: argv and env together have 1835193 bytes; a program accepts up to 1835008"},
		problemsOf(t, oneWorker(func(s *RunSpec) { s.Command = many(fits + 40) })))

	// A variable counts once, in the layer that wins. An override with a smaller command is
	// valid.
	s := oneWorker(func(s *RunSpec) {
		s.Tasks[0].Count = new(2)
		s.Tasks[0].Args = many(fits - 20_000)
		s.Env, s.Tasks[0].Env = Env{}, Env{}
		for i := range 5000 {
			name := "A" + strconv.Itoa(i)
			s.Env[name], s.Tasks[0].Env[name] = Variable{Value: strings.Repeat("x", 20)}, Variable{Value: "y"}
		}
		s.Tasks[0].Overrides = map[string]Override{"0": {Args: []string{}}, "1": {Env: EnvOf(map[string]string{"A0": strings.Repeat("z", 110_000)})}}
	})
	var exact int
	for _, a := range s.TaskList()[1].Command {
		exact += len(a) + execOverhead
	}
	for k, v := range s.TaskList()[1].Env {
		exact += v.size(k) + execOverhead
	}
	require.Equal(t, []string{fmt.Sprintf("tasks[0].overrides.1: argv and env together have %d bytes; a program accepts up to 1835008", exact)}, problemsOf(t, s))
}

func TestValidateAcceptsItsDefaults(t *testing.T) {
	s := oneWorker(func(*RunSpec) {})
	require.NoError(t, s.WithDefaults().Validate())
}

func TestRequests(t *testing.T) {
	type request interface{ Validate() error }
	cases := []struct {
		request request
		want    string
	}{
		{TaskRequest{Tasks: []string{"worker-1"}, Signal: "INT", Grace: DurationOf(0)}, ""},
		{TaskRequest{}, `tasks: missing; name the tasks, such as ["worker-1"]`},
		{TaskRequest{Tasks: []string{"worker"}, Signal: "SIGFOO", Grace: DurationOf(-1)}, `tasks[0]: "worker" is not a task name; write its type and index, such as worker-3
			signal: "SIGFOO" is not a signal; use its name, such as SIGTERM
			grace: must be 0s or more, not -1ns; for example, "3s", "90m" or "1h30m"`},
		{TerminateAllRequest{}, ""},
		{TerminateAllRequest{Signal: "9", Grace: DurationOf(-1)}, `signal: "9" is not a signal; did you mean SIGKILL?
			grace: must be 0s or more, not -1ns; for example, "3s", "90m" or "1h30m"`},
		{SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGUSR1"}, ""},
		{SignalRequest{}, `tasks: missing; name the tasks, such as ["worker-1"]
			signal: missing; use a signal's name, such as "SIGUSR1"`},
		{SignalRequest{Tasks: []string{"worker-0"}, Signal: "x"}, `signal: "x" is not a signal; use its name, such as SIGTERM`},
		{StartTaskRequest{Task: "evaluator-0", Command: []string{"x"}, Dir: "/", Env: EnvOf(map[string]string{"A": ""})}, ""},
		{StartTaskRequest{Command: []string{}, Dir: "x", Env: EnvOf(map[string]string{"CLUSTERRUN_RANK": "1"})}, `task: "" is not a task name; write its type and index, such as worker-3
			command: is empty; specify the argv, such as command: [python3, train.py], or omit it
			dir: "x" is a relative path; write an absolute path, such as /srv/job
			env.CLUSTERRUN_RANK: names that start with CLUSTERRUN_ are reserved for clusterrun; choose another name`},
	}
	for _, c := range cases {
		err := c.request.Validate()
		if c.want == "" {
			assert.NoError(t, err, "%+v", c.request)
			continue
		}
		var invalid *InvalidRequestError
		if assert.ErrorAs(t, err, &invalid, "%+v", c.request) {
			var got []string
			for _, p := range invalid.Problems {
				got = append(got, p.String())
			}
			assert.Equal(t, strings.Split(strings.ReplaceAll(c.want, "\n\t\t\t", "\n"), "\n"), got)
		}
	}
}

func TestAfterOf(t *testing.T) {
	for text, want := range map[string]After{
		"prep": {Run: "prep"}, "prep:ok": {"prep", AfterOK}, "prep:failed": {"prep", AfterFailed}, "a:b:any": {"a:b", AfterAny},
		"a:b": {Run: "a:b"}, ":any": {"", AfterAny},
	} {
		assert.Equal(t, want, AfterOf(text), text)
	}
}

func TestAfterHolds(t *testing.T) {
	ends := []RunEnd{EndedWell, EndedBadly, EndedSkipped, EndedUnknown}
	for when, want := range map[AfterWhen][]bool{
		"":          {true, false, false, false},
		AfterOK:     {true, false, false, false},
		AfterFailed: {false, true, false, false},
		AfterAny:    {true, true, true, true},
	} {
		for i, end := range ends {
			assert.Equal(t, want[i], After{"prep", when}.Holds(end), "%s after %s", end, when)
		}
	}
}

func TestHostCount(t *testing.T) {
	for count, want := range map[HostCount]struct {
		least, most int
		json        string
	}{
		"4":   {4, 4, `4`},
		"2:4": {2, 4, `"2:4"`},
		"3:3": {3, 3, `"3:3"`},
	} {
		least, most := count.Bounds()
		assert.Equal(t, [2]int{want.least, want.most}, [2]int{least, most}, count)
		b := must.Get(json.Marshal(count))(t)
		assert.Equal(t, want.json, string(b))
		back := must.JSON[HostCount](t, b)
		assert.Equal(t, count, back)
	}
}

func TestSized(t *testing.T) {
	s := must.Get(DecodeYAML([]byte(`{command: [x], tasks: [{type: chief}, {type: worker, count: 7}], hosts: "2:4", restart_scope: group}`)))(t)
	assert.True(t, s.IsElastic())
	assert.Equal(t, 2, s.TasksPerHost())
	assert.Same(t, s, s.Sized(8))
	tasks := s.Sized(4).TaskList()
	assert.Equal(t, s.TaskList()[:4], tasks)
	assert.Len(t, s.TaskList(), 8)
}

func TestSplitAddress(t *testing.T) {
	for addr, want := range map[string]struct {
		host string
		port int
	}{
		"host-a:2222": {"host-a", 2222}, "host-a": {"host-a", 0}, "10.0.0.7:65535": {"10.0.0.7", 65535}, "h:1": {"h", 1},
		"[::1]:2222": {"::1", 2222}, "[::1]": {"::1", 0}, "[fe80::1%eth0]:1": {"fe80::1%eth0", 1}, "Node_1.example.com": {"Node_1.example.com", 0},
	} {
		host, port, err := SplitAddress(addr)
		require.NoError(t, err, addr)
		assert.Equal(t, want.host, host)
		assert.Equal(t, want.port, port)
	}
	for _, addr := range []string{
		"", ":1", "h:", "h:0", "h:65536", "h:-1", "h:+1", "h:01", "h:x", "h:1:2", "::1", "[::1", "[::1]x", "[::1]:", "[1.2.3.4]:1", "[h]:1",
		"a b:1", "a/b:1", "-h:1", "h-:1", ".h", "h\n:1", "é:1", "[fe80::1%a/b]:1", "[fe80::1%a\n]:1", strings.Repeat("h", 254),
	} {
		host, port, err := SplitAddress(addr)
		assert.Error(t, err, "%q", addr)
		assert.Zero(t, host+strings.Repeat("x", port))
	}
}

func TestIsLoopback(t *testing.T) {
	for _, host := range []string{"localhost", "LocalHost", "127.0.0.1", "127.1.2.3", "::1", "[::1]", "::ffff:127.0.0.1"} {
		assert.True(t, IsLoopback(host), host)
	}
	for _, host := range []string{"", "host-a", "10.0.0.7", "0.0.0.0", "::", "localhost.example.com", "127.0.0.1.example.com"} {
		assert.False(t, IsLoopback(host), host)
	}
}

func TestStopAfter(t *testing.T) {
	lost := []RequeueOn{RequeueOnPreemption, RequeueOnHostLost}
	for _, c := range []struct {
		text    OnDisconnect
		requeue []RequeueOn
		hosts   int
		want    time.Duration
	}{
		{"", nil, 1, 0}, {"", nil, 2, 2 * time.Minute}, {"", lost, 1, 2 * time.Minute},
		{OnDisconnectKeep, nil, 2, 0}, {OnDisconnectKeep, lost, 1, 0},
		{OnDisconnectStop(30 * time.Second), nil, 1, 30 * time.Second}, {"30s", lost, 5, 30 * time.Second},
	} {
		assert.Equal(t, c.want, (&RunSpec{OnDisconnect: c.text, RequeueOn: c.requeue}).StopAfter(c.hosts), "%q %s on %d", c.text, c.requeue, c.hosts)
	}
}

func TestOnDisconnectTravels(t *testing.T) {
	for text, written := range map[OnDisconnect]string{OnDisconnectKeep: `"keep"`, "30s": `{"stop_after":"30s"}`} {
		b := must.Get(json.Marshal(text))(t)
		assert.JSONEq(t, written, string(b))
		back := must.JSON[OnDisconnect](t, b)
		assert.Equal(t, text, back)
	}
}

func TestEachCauseIsExplainedInALine(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(CausesText(), "\n"), "\n")
	assert.Len(t, lines, 10)
	constants := regexp.MustCompile(`(?m)^Cause\w+ +"(.+)"$`).FindAllStringSubmatch(must.Read(t, "testdata/contract.golden"), -1)
	require.Len(t, constants, len(Causes))
	for _, c := range constants {
		assert.Contains(t, CausesText(), "  "+c[1]+" ")
	}
	for _, line := range lines {
		assert.LessOrEqual(t, len(line), 100)
	}
	assert.Contains(t, CausesText(), "\n  collateral  clusterrun stopped it because ")
}
