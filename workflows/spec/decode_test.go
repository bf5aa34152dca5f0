package spec

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	fromYAML, err := DecodeYAML([]byte("command: [x]\ntasks:\n  - type: worker\n    overrides: {1: {args: [a]}, 0: {}}\n    count: 2\n"))
	require.NoError(t, err)
	fromJSON, err := Decode([]byte(`{"command": ["x"], "tasks": [{"type": "worker", "count": 2, "overrides": {"0": {}, "1": {"args": ["a"]}}}]}`))
	require.NoError(t, err)
	require.Equal(t, fromJSON, fromYAML)
}

// JSON is read by the JSON reader even if it is given as YAML, since YAML has other escapes.
func TestDecodeYAMLTakesJSON(t *testing.T) {
	s, err := DecodeYAML([]byte("\ufeff" + `  {"command": ["\ud83d\ude00\/"], "tasks": [{"type": "worker"}]}`))
	require.NoError(t, err)
	require.Equal(t, []string{"😀/"}, s.Command)
}

func TestDecodeCompletesBeforeItValidates(t *testing.T) {
	doc := []byte(`{"worker": ["localhost:1", "localhost:2"]}`)
	_, err := Decode(doc)
	require.ErrorContains(t, err, "command: missing")
	s, err := Decode(doc, func(s *RunSpec) { s.Command = []string{"./train"} }, func(s *RunSpec) { s.Dir = "/srv" + s.Dir })
	require.NoError(t, err)
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
	require.EqualError(t, err, "invalid run spec: the document has 1048576 bytes; a run spec must have fewer than 1048576; pass large data in files")
}

// The expanded size of a small document is bounded as well.
func TestDecodeYAMLBoundsAliases(t *testing.T) {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	_, err := DecodeYAML([]byte(laughs.String()))
	require.ErrorContains(t, err, "expand to too much")

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
	require.True(t, strings.HasPrefix(err.Error(), "invalid run spec, 100000 problems:\n  command[0]: must be a text"))
	require.True(t, strings.HasSuffix(err.Error(), "\n  and 99900 more"))
}

// A message is one line of printable text, for any document.
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

// The workflow decodes within one workflow task, which has a second in all.
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
