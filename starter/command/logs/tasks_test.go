package logs

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
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
			shown := TasksOf(nil, s).Shown(s)
			for range 2 { // the second time from the cache
				for _, st := range c.shown {
					assert.True(t, shown(st), "%+v", st)
				}
				for _, st := range c.hidden {
					assert.False(t, shown(st), "%+v", st)
				}
			}
		})
	}
}

// A task added during the run is found by its rank.
func TestTasksThatAreAdded(t *testing.T) {
	s := (&spec.RunSpec{Logs: spec.Logs{Filter: []string{"evaluator"}}, Tasks: []spec.TaskGroup{{Type: "worker"}}}).WithDefaults()
	x := TasksOf(nil, s)
	x.add(&starter.Status{Tasks: []starter.TaskStatus{
		{TaskStatus: spec.TaskStatus{Type: "other", Rank: 0}},
		{TaskStatus: spec.TaskStatus{Type: "evaluator", Index: 2, Rank: 1}},
	}})
	assert.Equal(t, "worker-0", x.Name(0))
	shown := x.Shown(s)
	assert.False(t, shown(tasklog.Stream{Rank: 0}))
	assert.True(t, shown(tasklog.Stream{Rank: 1}))
	prefix := must.Get(x.Prefixes(s.Logs.Prefix))(t)
	assert.Equal(t, "[evaluator-2]: ", prefix(1, 0))
}

func TestLabels(t *testing.T) {
	two := 2
	s := (&spec.RunSpec{Tasks: []spec.TaskGroup{{Type: "chief"}, {Type: "worker", Count: &two}}}).WithDefaults()
	prefix := must.Get(TasksOf(nil, s).Prefixes(s.Logs.Prefix))(t)
	assert.Equal(t, "[chief-0]:     ", prefix(0, 0))
	assert.Equal(t, "[worker-1]:    ", prefix(2, 0))

	s.Logs.Prefix = new("{{.Rank}}/{{.Attempt}} ")
	prefix = must.Get(TasksOf(nil, s).Prefixes(s.Logs.Prefix))(t)
	assert.Equal(t, "2/3 ", prefix(2, 3))
}
