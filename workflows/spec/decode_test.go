package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/tests/must"
)

func TestDecodeFillsEveryField(t *testing.T) {
	s, err := Decode([]byte(`{
		"name": "iris", "command": ["python3", "train.py"],
		"tasks": [{"type": "worker", "count": 3, "args": ["-v"], "env": {"A": "1"}, "overrides": {"1": {"args": []}}}],
		"dependence_on_chief": false, "chief_grace": "1m30s", "max_restarts": 2, "auto_restart": true,
		"stop": {"grace": "0s"}, "logs": {"local_ranks_filter": [0, 2]}, "env_profiles": ["torch"]}`))
	require.NoError(t, err)
	require.Equal(t, &RunSpec{
		Name:    "iris",
		Command: []string{"python3", "train.py"},
		Tasks: []TaskGroup{{
			Type: "worker", Count: new(3), Args: []string{"-v"}, Env: EnvOf(map[string]string{"A": "1"}),
			Overrides: map[string]Override{"1": {Args: []string{}}},
		}},
		DependenceOnChief: new(false),
		ChiefGrace:        DurationOf(90 * time.Second),
		AutoRestart:       true,
		MaxRestarts:       new(2),
		Stop:              Stop{Grace: DurationOf(0)},
		Logs:              Logs{LocalRanksFilter: []int{0, 2}},
		EnvProfiles:       []EnvProfile{EnvTorch},
	}, s)
}

func TestDecodeAndDecodeYAMLAgree(t *testing.T) {
	fromYAML := must.Get(DecodeYAML([]byte("command: [x]\ntasks:\n  - type: worker\n    overrides: {1: {args: [a]}, 0: {}}\n    count: 2\n")))(t)
	fromJSON := must.Get(Decode([]byte(`{"command": ["x"], "tasks": [{"type": "worker", "count": 2, "overrides": {"0": {}, "1": {"args": ["a"]}}}]}`)))(t)
	require.Equal(t, fromJSON, fromYAML)
}

// JSON goes to the JSON reader even if it is given as YAML, since YAML's escapes differ.
func TestDecodeYAMLTakesJSON(t *testing.T) {
	s := must.Get(DecodeYAML([]byte("\ufeff" + `  {"command": ["\ud83d\ude00\/"], "tasks": [{"type": "worker"}]}`)))(t)
	require.Equal(t, []string{"😀/"}, s.Command)
}

func TestDecodeCompletesBeforeItValidates(t *testing.T) {
	doc := []byte(`{"worker": ["localhost:1", "localhost:2"]}`)
	_, err := Decode(doc)
	require.ErrorContains(t, err, "command: missing")
	s := must.Get(Decode(doc, func(s *RunSpec) { s.Command = []string{"./train"} }, func(s *RunSpec) { s.Dir = "/srv" + s.Dir }))(t)
	require.Equal(t, []string{"./train"}, s.Command)
	require.Equal(t, "/srv", s.Dir)

	_, err = DecodeYAML([]byte("tasks: [{type: worker}]"), func(s *RunSpec) { s.Command = []string{""} })
	require.ErrorContains(t, err, "command[0]: is empty")
}

func TestDecodeRefusesLargeDocuments(t *testing.T) {
	doc := `{"command": ["x"], "tasks": [{"type": "worker"}]}`
	_, err := Decode([]byte(doc + strings.Repeat(" ", MaxSpecBytes-len(doc)-1)))
	require.NoError(t, err)
	_, err = Decode([]byte(doc + strings.Repeat(" ", MaxSpecBytes-len(doc))))
	require.EqualError(t, err, "invalid run spec: the document has 1048576 bytes; a run spec must be smaller than 1048576 bytes; put large data into files")
}

// The expanded size of a small document is also limited.
func TestDecodeYAMLBoundsAliases(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	_, err := DecodeYAML([]byte(laughs.String()))
	require.ErrorContains(t, err, "expand too far")

	word := strings.Repeat("x", 100_000)
	_, err = DecodeYAML([]byte("command: [x]\ntasks: [{type: worker, args: [&w " + word + strings.Repeat(", *w", 12) + "]}]"))
	require.ErrorContains(t, err, "bytes as JSON")
}

func TestDecodeSurvivesDepth(t *testing.T) {
	for _, doc := range []string{
		strings.Repeat("[", 500_000), strings.Repeat(`{"a":`, 100_000), `{"tasks":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "}",
	} {
		_, err := Decode([]byte(doc))
		require.Error(t, err)
		_, err = DecodeYAML([]byte(doc))
		require.Error(t, err)
	}
}

func TestProblemListIsBounded(t *testing.T) {
	_, err := Decode([]byte(`{"tasks": [{"type": "worker"}], "command": [` + strings.TrimSuffix(strings.Repeat("0,", 100_000), ",") + `]}`))
	var invalid *InvalidSpecError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, maxProblems)
	require.Equal(t, 100_000-maxProblems, invalid.More)
	require.Less(t, len(err.Error()), 20_000)
	require.True(t, strings.HasPrefix(err.Error(), "invalid run spec, 100000 problems:\n  command[0]: must be a string"))
	require.True(t, strings.HasSuffix(err.Error(), "\n  and 99900 more"))
}

// For any document, a message is one line of printable text.
func TestProblemsArePrintable(t *testing.T) {
	long := strings.Repeat("é", 1000)
	_, err := Decode([]byte(`{"\u001b[31m\n` + long + `": 1, "command": ["x"], "tasks": [{"type": "\u0007` + long + `"}]}`))
	var invalid *InvalidSpecError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 2)
	for _, p := range invalid.Problems {
		assert.Less(t, len(p.String()), 800)
		assert.NotContains(t, p.String(), "\n")
		assert.NotContains(t, p.String(), "\x1b")
		assert.NotContains(t, p.String(), "\x07")
	}
}

// The workflow decodes within one workflow task, which must finish in a second.
func TestLargestSpecIsReadQuickly(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	var doc strings.Builder
	doc.WriteString(`{"command": ["x"], "tasks": [{"type": "worker", "count": 1000, "env": {`)
	for i := 0; doc.Len() < MaxSpecBytes-100; i++ {
		if i > 0 {
			doc.WriteByte(',')
		}
		fmt.Fprintf(&doc, `"A%d":""`, i)
	}
	doc.WriteString(`}}]}`)
	start := time.Now()
	_, err := Decode([]byte(doc.String()))
	require.NoError(t, err)
	require.Less(t, time.Since(start), 20*time.Second, "far from the 0.2 s it takes, also under the race detector")
	t.Log(time.Since(start))
}

func TestErrorTexts(t *testing.T) {
	one := &InvalidSpecError{Problems: []Problem{{Path: "a", Message: "is b", Remedy: "write c"}}}
	assert.EqualError(t, one, "invalid run spec: a: is b; write c")
	two := &InvalidRequestError{Problems: []Problem{{Message: "x"}, {Path: "a", Line: 3, Message: "No."}}}
	assert.EqualError(t, two, "invalid request, 2 problems:\n  x\n  line 3: a: No.")
}

func TestNearest(t *testing.T) {
	known := fieldNames(reflect.TypeFor[RunSpec]())
	for name, want := range map[string]string{
		"comand": "command", "maxRestarts": "max_restarts", "max-run-time": "max_run_time", "Tasks": "tasks", "tsaks": "tasks",
		"xyz": "", "": "", "restart": "", "logging": "", strings.Repeat("x", 1000): "", "timeuot": "timeout",
	} {
		assert.Equal(t, want, Nearest(name, known), "%q", name)
	}
}

func TestShownValue(t *testing.T) {
	for value, want := range map[string]string{
		`{"loss": {"$clusterrun.number": "NaN"}, "a": [{"$clusterrun.number":"-Infinity"}, 1]}`: `{"loss":NaN,"a":[-Infinity,1]}`,
		`{"$clusterrun.number":"Infinity"}`:                                                     `Infinity`,
		`"{\"$clusterrun.number\":\"NaN\"}"`:                                                    `"{\"$clusterrun.number\":\"NaN\"}"`,
		`{"$clusterrun.number":"seven"}`:                                                        `{"$clusterrun.number":"seven"}`,
		`{"$clusterrun.number":"NaN","more":1}`:                                                 `{"$clusterrun.number":"NaN","more":1}`,
		`{"$clusterrun.bytes":"AA=="}`:                                                          `{"$clusterrun.bytes":"AA=="}`,
		`{`:                                                                                     `{`,
	} {
		assert.Equal(t, want, FormatValue(json.RawMessage(value)))
	}
}

func TestDurationText(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"3s": 3 * time.Second, "90m": 90 * time.Minute, "1h30m": 90 * time.Minute, "0": 0, "0.5s": 500 * time.Millisecond, "1us": time.Microsecond,
	} {
		d := must.Get(ParseDuration(text))(t)
		assert.Equal(t, Duration(want), d)
	}
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 10 * time.Second: "10s", time.Minute: "1m", 10 * time.Minute: "10m", time.Hour: "1h", 20 * time.Hour: "20h",
		time.Hour + time.Second: "1h0m1s", 90 * time.Minute: "1h30m", time.Minute + time.Millisecond: "1m0.001s", -time.Minute: "-1m",
	} {
		assert.Equal(t, want, Duration(d).String())
		back := must.Get(ParseDuration(want))(t)
		assert.Equal(t, Duration(d), back)
	}
	for _, text := range []string{"", "3", "1d", "3 s", "three", "9999999h"} {
		_, err := ParseDuration(text)
		assert.EqualError(t, err, Quote(text)+` is not a duration; for example, "3s", "90m" or "1h30m"`)
	}
}

func TestDurationJSON(t *testing.T) {
	v := must.JSON[struct{ D *Duration }](t, `{"D": "1h0m0s"}`)
	assert.Equal(t, time.Hour, v.D.Std())
	assert.JSONEq(t, `{"D": "1h"}`, toJSON(t, v))
	require.NoError(t, json.Unmarshal([]byte(`{"D": null}`), &v))
	assert.Zero(t, v.D.Std(), "nil is 0")
	assert.ErrorContains(t, json.Unmarshal([]byte(`{"D": 3}`), &v), `a duration is a string such as "3s", not 3`)
	assert.ErrorContains(t, json.Unmarshal([]byte(`{"D": "3"}`), &v), `"3" is not a duration`)
	assert.Equal(t, time.Minute, DurationOf(time.Minute).Std())
}

func TestReferenceGolden(t *testing.T) {
	golden(t, "testdata/reference.golden.txt", Reference())
}

func TestReferenceFitsTheScreen(t *testing.T) {
	for line := range strings.SplitSeq(Reference(), "\n") {
		assert.LessOrEqual(t, utf8.RuneCountInString(line), referenceColumns, line)
	}
	for _, f := range fields {
		of, _, _ := strings.Cut(f.of, ".")
		if slices.Contains([]string{"Archive", "HostService", "Signature", "ShipSweep"}, of) {
			continue // not handwritten
		}
		assert.Contains(t, Reference(), f.example+"\n", f.of)
	}
}

func TestSignalsAreTheKernels(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the table is that of Linux")
	}
	for n := 1; n < 32; n++ {
		assert.Equal(t, unix.SignalName(syscall.Signal(n)), SignalName(n))
	}
	for _, name := range signalNames() {
		n := must.Get(SignalNumber(name))(t)
		if known := unix.SignalNum(name); known != 0 {
			assert.Equal(t, int(known), n, name)
		}
		short := must.Get(SignalNumber(name[len("SIG"):]))(t)
		assert.Equal(t, n, short)
	}
}

func TestUnknownSignals_SEED87(t *testing.T) {
	for _, n := range []int{0, -1, -15, 32, 33, 35, 63, 65, 1000} {
		assert.Equal(t, "<N/A>", SignalName(n))
	}
	assert.Equal(t, "SIGRTMIN", SignalName(34))
	assert.Equal(t, "SIGRTMAX", SignalName(64))
	for name, remedy := range map[string]string{
		"": "use its name, such as SIGTERM", "sigterm": "did you mean SIGTERM?", "15": "did you mean SIGTERM?",
		"99": "use its name, such as SIGTERM", "SIGTREM": "did you mean SIGTERM?", "SIG": "use its name, such as SIGTERM",
	} {
		_, err := SignalNumber(name)
		assert.ErrorContains(t, err, remedy, "%q", name)
	}
}

func TestOtherTexts(t *testing.T) {
	assert.Equal(t, "worker-1 is running; `clusterrun restart` restarts it", TaskRunningText("worker-1"))
}

func TestVisible(t *testing.T) {
	assert.Equal(t, "a\n\tb ü", EscapeControl("a\n\tb ü"))
	assert.Equal(t, `\x1b[31mred\a\r\u202e\u0085`, EscapeControl("\x1b[31mred\a\r\u202e\u0085"))
	assert.Equal(t, "\uFFFD", EscapeControl("\xff"))
	assert.Equal(t, `a b \x1b[31mc`, OneLine(" a\n\tb\r\x1b[31mc\n"))
}
