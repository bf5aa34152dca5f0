package run

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Teed streams are followed; streams that are written directly to the console are not.
func TestSelection(t *testing.T) {
	out := func(rank int) tasklog.Stream { return tasklog.Stream{Rank: rank} }
	errs := func(rank int) tasklog.Stream { return tasklog.Stream{Rank: rank, Stderr: true} }
	for name, c := range map[string]struct {
		logs          spec.Logs
		shown, hidden []tasklog.Stream
		straight      bool
	}{
		"default":         {spec.Logs{}, []tasklog.Stream{out(0), errs(0), out(3)}, nil, false},
		"no tee":          {spec.Logs{Tee: "0"}, nil, []tasklog.Stream{out(0), errs(0)}, false},
		"tee of stderr":   {spec.Logs{Tee: "2"}, []tasklog.Stream{errs(1)}, []tasklog.Stream{out(1)}, false},
		"tee by rank":     {spec.Logs{Tee: "1:3"}, []tasklog.Stream{out(1), errs(1)}, []tasklog.Stream{out(0)}, false},
		"no redirects":    {spec.Logs{Tee: "0", Redirects: "1"}, nil, []tasklog.Stream{out(0), errs(0)}, true},
		"some local rank": {spec.Logs{LocalRanksFilter: []int{1}}, []tasklog.Stream{out(1)}, []tasklog.Stream{out(0), errs(2)}, false},
		"a type":          {spec.Logs{Filter: []string{"ps"}}, []tasklog.Stream{out(3)}, []tasklog.Stream{out(0)}, false},
		"a task":          {spec.Logs{Filter: []string{"worker-1"}}, []tasklog.Stream{out(1)}, []tasklog.Stream{out(0), out(3)}, false},
		"null directory":  {spec.Logs{Dir: spec.NullDir}, nil, []tasklog.Stream{out(0), errs(3)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			three := 3
			s := (&spec.RunSpec{Logs: c.logs, Tasks: []spec.TaskGroup{{Type: "worker", Count: &three}, {Type: "ps"}}}).WithDefaults()
			shown := newTaskIndex(nil, s).selection(s)
			for range 2 { // the second time from the cache
				for _, st := range c.shown {
					assert.True(t, shown(st), "%+v", st)
				}
				for _, st := range c.hidden {
					assert.False(t, shown(st), "%+v", st)
				}
			}
			assert.Equal(t, c.straight, directOutput(s))
		})
	}
}

// A task added during the run is found by its rank.
func TestTasksThatAreAdded(t *testing.T) {
	s := (&spec.RunSpec{Logs: spec.Logs{Filter: []string{"evaluator"}}, Tasks: []spec.TaskGroup{{Type: "worker"}}}).WithDefaults()
	x := newTaskIndex(nil, s)
	x.learn(&starter.Status{Tasks: []starter.TaskStatus{
		{TaskStatus: spec.TaskStatus{Type: "other", Rank: 0}},
		{TaskStatus: spec.TaskStatus{Type: "evaluator", Index: 2, Rank: 1}},
	}})
	assert.Equal(t, "worker-0", x.name(0))
	shown := x.selection(s)
	assert.False(t, shown(tasklog.Stream{Rank: 0}))
	assert.True(t, shown(tasklog.Stream{Rank: 1}))
	prefix := must.Get(x.prefixes(s))(t)
	assert.Equal(t, "[evaluator-2]: ", prefix(1, 0))
}

func TestLabels(t *testing.T) {
	two := 2
	s := (&spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "chief"}, {Type: "worker", Count: &two}}}).WithDefaults()
	prefix := must.Get(newTaskIndex(nil, s).prefixes(s))(t)
	assert.Equal(t, "[chief-0]:     ", prefix(0, 0))
	assert.Equal(t, "[worker-1]:    ", prefix(2, 0))

	s.Logs.Prefix = new("{{.Rank}}/{{.Attempt}} ")
	prefix = must.Get(newTaskIndex(nil, s).prefixes(s))(t)
	assert.Equal(t, "2/3 ", prefix(2, 3))
}

// broken is an output that has lost its reader.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// Our own messages are written even if programs' output cannot be.
func TestVoiceOutlivesABrokenOutput(t *testing.T) {
	var stderr bytes.Buffer
	a := &cli.App{Err: &stderr}
	console := tasklog.NewConsole(broken{}, &stderr, tasklog.ConsoleOptions{})
	a.Printer.Through(console)
	a.Say("one")
	console.Deliver(tasklog.Chunk{Data: []byte("x\n"), Start: true})
	a.Say("two")
	assert.Equal(t, "clusterrun: one\nclusterrun: two\n", stderr.String())
}
