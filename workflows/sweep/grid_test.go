package sweep_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/sweep"
)

// rows returns the values of all trials, one trial per line.
func rows(t *testing.T, g sweep.Grid) string {
	trials := must.Get(g.Parse())(t)
	var lines []string
	for i := range trials.Len() {
		lines = append(lines, sweep.Words(trials.Values(i)))
	}
	return strings.Join(lines, "; ")
}

func TestProduct(t *testing.T) {
	for text, want := range map[string]string{
		"lr=1e-3,3e-4 seed=0..2":         "lr=1e-3 seed=0; lr=1e-3 seed=1; lr=1e-3 seed=2; lr=3e-4 seed=0; lr=3e-4 seed=1; lr=3e-4 seed=2",
		" a=1 ":                          "a=1",
		"a=1\n\tb=2,3":                   "a=1 b=2; a=1 b=3",
		"n=8..10":                        "n=8; n=9; n=10",
		"n=08..10":                       "n=08; n=09; n=10",
		"n=2..-2..2":                     "n=2; n=0; n=-2",
		"n=0..9..4,100":                  "n=0; n=4; n=8; n=100",
		"n=5..5":                         "n=5",
		"x='a b','c,d',\"it's\"":         "x=a b; x=c,d; x=it's",
		"x='1..3'":                       "x=1..3",
		"x=''":                           "x=",
		"dir=../data,/a/../b":            "dir=../data; dir=/a/../b",
		"x=a=b,pre' 'fix":                "x=a=b; x=pre fix",
		"with-dash=1 _y=2":               "with-dash=1 _y=2",
		"x=ü,日本":                         "x=ü; x=日本",
		"a=1,1":                          "a=1; a=1",
		"zero=-02..1":                    "zero=-02; zero=-01; zero=000; zero=001",
		"big=999999999998..999999999999": "big=999999999998; big=999999999999",
	} {
		g, err := sweep.ProductGrid(text)
		if assert.NoError(t, err, text) {
			assert.Equal(t, want, rows(t, g), text)
		}
	}
}

func TestRefusedProducts(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "it is empty",
		"  ":                  "it is empty",
		"lr":                  `"lr": it lists no values`,
		"lr 1=2":              `"lr": it lists no values`,
		"lr=":                 "parameter lr: a value is missing",
		"lr=1,,2":             "parameter lr: a value is missing",
		"lr=1,":               "parameter lr: a value is missing",
		"lr='a":               "parameter lr: the quote ' is not closed",
		"lr=1 lr=2":           "parameter lr: it is given twice",
		"a-b=1 a_b=2":         "parameters a-b and a_b: both would be the variable CLUSTERRUN_PARAM_A_B",
		"1x=1":                `parameter "1x": a name consists of letters`,
		"=1":                  `parameter "": a name consists of letters`,
		"trial=1":             "parameter trial: {trial} is reserved",
		"n=0..9..0":           "the step of the range 0..9..0 is not above 0",
		"n=0..1e3":            "the range 0..1e3 is not of whole numbers",
		"n=0..99999999999999": "the range 0..99999999999999 is not of whole numbers",
		"n=0..100000":         "it has more than 100000 trials",
		"a=0..999 b=0..999 c=0..9999999 d=0..9999999": "it has more than 100000 trials",
		"n=-1000000000000..1000000000000":             "it has more than 100000 trials",
	} {
		_, err := sweep.ProductGrid(text)
		assert.ErrorContains(t, err, want, text)
	}
}

func TestTable(t *testing.T) {
	for text, want := range map[string]string{
		"lr,seed\n1e-3,0\n3e-4,1\n":                  "lr=1e-3 seed=0; lr=3e-4 seed=1",
		"\ufefflr, seed\r\n1e-3,0\r\n":               "lr=1e-3 seed=0",
		"x\n\n1\n\n2":                                "x=1; x=2",
		"x,y\n\"a, b\",\"say \"\"hi\"\"\"\n,\n":      `x=a, b y=say "hi"; x= y=`,
		"x\n" + strings.Repeat("long value\n", 5000): strings.TrimSuffix(strings.Repeat("x=long value; ", 5000), "; "),
	} {
		g, err := sweep.TableGrid([]byte(text))
		if assert.NoError(t, err) {
			assert.Equal(t, want, rows(t, g))
		}
	}
}

func TestRefusedTables(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "the table is empty",
		"\n \n":                "the table is empty",
		"lr,seed\n":            "it does not contain trials",
		"lr,seed\n1,2\n3\n":    "line 3: it has 1 column, but the first line has 2 names",
		"lr\n1,2\n":            "line 2: it has 2 columns, but the first line has 1 name",
		"lr,lr\n1,2\n":         "parameter lr: it is given twice",
		"lr,\n1,2\n":           `parameter "": a name consists of letters`,
		"lr\n\"1\n":            `line 2: extraneous or missing " in quoted-field`,
		"x\n1\n2 \"quoted\"\n": `line 3: bare " in non-quoted-field`,
		"x\n" + strings.Repeat("1\n", sweep.MaxTrials+1): "line 100002: it is trial 100001, but a sweep has at most 100000",
	} {
		_, err := sweep.TableGrid([]byte(text))
		assert.ErrorContains(t, err, want)
	}
	_, err := sweep.TableGrid([]byte("x\n" + strings.Repeat(fmt.Sprintln(strings.Repeat("x", 1<<16)), 1100)))
	assert.ErrorContains(t, err, "it has more than 67108864 bytes")
}

func newSpec(t *testing.T, grid string, command ...string) *sweep.Spec {
	g := must.Get(sweep.ProductGrid(grid))(t)
	return &sweep.Spec{Run: &spec.RunSpec{Command: command, Tasks: []spec.TaskGroup{{Type: "worker"}}}, Grid: g, Rules: sweep.Rules{AtMost: 1}}
}

func TestTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"{lr}":                  "1e-3",
		"--lr={lr},{lr}-{seed}": "--lr=1e-3,1e-3-7",
		"out/{sweep}/{trial}":   "out/hp/0",
		"{{lr}}":                "{lr}",
		"{{{lr}}}":              "{{lr}}",
		"${HOME} ${lr}":         "${HOME} ${lr}",
		"awk {print $1}":        "awk {print $1}",
		`{"a":{"b":{lr}}}`:      `{"a":{"b":1e-3}}`,
		"{}":                    "{}",
		"{lr":                   "{lr",
		"{{lr}":                 "{1e-3",
		"{ lr }":                "{ lr }",
		"{{ lr }}":              "{{ lr }}",
		"a}b{":                  "a}b{",
		"{1..3}":                "{1..3}",
	} {
		s := newSpec(t, "lr=1e-3 seed=7", "echo", text)
		trials, err := s.Check("hp")
		if !assert.NoError(t, err, text) {
			continue
		}
		one := must.Get(s.Trial(trials, "hp", 0))(t)
		assert.Equal(t, want, one.Command[1], text)
	}
}

// Everything in a spec that differs between tasks may contain templates. The sweep's own template
// is not changed.
func TestTrialSpec(t *testing.T) {
	s := newSpec(t, "lr=1,2", "train", "{lr}")
	s.Run.Dir = "/runs/{lr}"
	s.Run.Env = spec.EnvOf(map[string]string{"LR": "{lr}"})
	s.Run.Tasks = []spec.TaskGroup{{
		Type: "worker", Args: []string{"{trial}"}, Dir: "/w/{lr}", Env: spec.EnvOf(map[string]string{"A": "{lr}"}),
		Overrides: map[string]spec.Override{"0": {Command: []string{"x{lr}"}, Args: []string{"{lr}"}, Dir: "/o/{lr}", Env: spec.EnvOf(map[string]string{"B": "{lr}"})}},
	}}
	trials := must.Get(s.Check("hp"))(t)
	one := must.Get(s.Trial(trials, "hp", 1))(t)
	assert.Equal(t, []string{"train", "2"}, one.Command)
	assert.Equal(t, "/runs/2", one.Dir)
	assert.Equal(t, spec.EnvOf(map[string]string{
		"LR": "2", "CLUSTERRUN_SWEEP": "hp", "CLUSTERRUN_TRIAL": "1", "CLUSTERRUN_PARAM_LR": "2",
	}), one.Env)
	g := one.Tasks[0]
	assert.Equal(t, []string{"1"}, g.Args)
	assert.Equal(t, "/w/2", g.Dir)
	assert.Equal(t, spec.EnvOf(map[string]string{"A": "2"}), g.Env)
	assert.Equal(t, spec.Override{Command: []string{"x2"}, Args: []string{"2"}, Dir: "/o/2", Env: spec.EnvOf(map[string]string{"B": "2"})}, g.Overrides["0"])
	assert.Equal(t, "{lr}", s.Run.Command[1])
	assert.Equal(t, "/o/{lr}", s.Run.Tasks[0].Overrides["0"].Dir)
}

func TestRefusedSweeps(t *testing.T) {
	_, err := newSpec(t, "lr=1", "train", "{learning_rate}").Check("hp")
	assert.EqualError(t, err, "command: {learning_rate} is not a parameter; there are {lr}, {trial} and {sweep}. Write {{learning_rate}} for the literal braces")
	s := newSpec(t, "lr=1", "train")
	s.AtMost = 1001
	_, err = s.Check("hp")
	assert.ErrorContains(t, err, "at_most is 1001; use 1 to 1000")
	s = newSpec(t, "dir=/a,b", "train")
	s.Run.Dir = "{dir}"
	_, err = s.Check("hp")
	assert.ErrorContains(t, err, "trial 1: ")
	assert.ErrorContains(t, err, `"b" is a relative path`)
}
