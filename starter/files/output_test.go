package files

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The result lacks a directory for a process that was lost with its host. Its output still
// counts as missing, and so does that of the host's other tasks, unless the host has listed its
// output.
func TestOutputOfALostHostIsMissed(t *testing.T) {
	lost := &spec.Exit{ExitCode: -1, Cause: spec.CauseHostLost}
	here := t.TempDir()
	s := &outcome.Status{RunID: "iris", State: spec.RunEnded, Result: &spec.RunResult{Tasks: []spec.TaskResult{
		{Name: "worker-0", Rank: 0, Host: "a", Exit: &spec.Exit{LogDir: here}},
		{Name: "worker-1", Rank: 1, Host: "b", Exit: lost},
		{Name: "worker-2", Rank: 2, Host: "b"},
		{Name: "worker-3", Rank: 3, Host: "c"}, // never launched
	}}}
	for _, r := range s.Result.Tasks {
		s.Tasks = append(s.Tasks, outcome.TaskStatus{TaskStatus: spec.TaskStatus{Name: r.Name, Type: "worker", Index: r.Rank, Rank: r.Rank, Host: r.Host, State: spec.TaskEnded, Exit: r.Exit}})
	}
	missed := func(b *host) (all []Missing) {
		f := Of(s, nil)
		f.hosts = append(f.hosts, b)
		for _, m := range f.Follow(Options{}, nil).Missing() {
			if len(m.Processes) > 0 {
				all = append(all, m)
			}
		}
		return all
	}
	unknown := []Missing{{Processes: []string{"worker-1", "worker-2"}, Why: ": the run did not record where they are"}}
	assert.Equal(t, unknown, missed(&host{name: "another"}))
	assert.Equal(t, unknown, missed(&host{name: "b", listed: true, listing: listing{err: errors.New("connection refused")}}))
	assert.Empty(t, missed(&host{name: "b", listed: true}), "it has said what it has")
}

// If a group's earlier hosts are unknown, earlier processes may have run on other hosts.
func TestEarlierGenerationsMayBeMissed(t *testing.T) {
	s := &outcome.Status{Generation: 1, Tasks: []outcome.TaskStatus{
		{TaskStatus: spec.TaskStatus{Name: "worker-0", Rank: 0}}, {TaskStatus: spec.TaskStatus{Name: "worker-1", Rank: 1}},
	}}
	misses := func(unknown bool, there map[int][]int) bool {
		f := Of(s, nil)
		f.unknown = unknown
		w := f.Follow(Options{}, nil)
		w.found(there)
		return len(w.Missing()) > 0
	}
	all, some := map[int][]int{0: {0, 1}, 1: {0, 1}}, map[int][]int{0: {0, 1}, 1: {1}}
	assert.False(t, misses(true, all))
	assert.True(t, misses(true, some))
	assert.False(t, misses(false, some), "all hosts were asked")
}

func TestWhichLogs(t *testing.T) {
	run := t.TempDir()
	for _, p := range [][2]int{{0, 0}, {1, 0}, {3, 0}, {0, 1}, {0, 2}} {
		require.NoError(t, tasklog.MakeDir(tasklog.ProcessDir(run, p[0], p[1])))
	}
	task := func(typ string, index, rank int) outcome.TaskStatus {
		return outcome.TaskStatus{TaskStatus: spec.TaskStatus{Name: spec.TaskName(typ, index), Type: typ, Index: index, Rank: rank}}
	}
	status := &outcome.Status{RunID: "iris-1", Tasks: []outcome.TaskStatus{task("worker", 0, 0), task("worker", 1, 1), task("ps", 0, 2)}}
	there := must.Get(tasklog.Attempts(run))(t)
	stream := func(attempt, rank int) tasklog.Stream { return tasklog.Stream{Attempt: attempt, Rank: rank} }
	errs := tasklog.Stream{Stderr: true}
	for name, c := range map[string]struct {
		l             Selection
		shown, hidden []tasklog.Stream
	}{
		"all":            {Selection{}, []tasklog.Stream{stream(0, 0), stream(7, 9), errs}, nil},
		"a task":         {Selection{Names: []string{"worker-1"}}, []tasklog.Stream{stream(0, 1)}, []tasklog.Stream{stream(0, 0), stream(0, 2)}},
		"a type":         {Selection{Names: []string{"worker"}}, []tasklog.Stream{stream(0, 0), stream(0, 1)}, []tasklog.Stream{stream(0, 2), stream(0, 9)}},
		"both":           {Selection{Names: []string{"worker-1", "ps"}}, []tasklog.Stream{stream(0, 1), stream(0, 2)}, []tasklog.Stream{stream(0, 0)}},
		"an attempt":     {Selection{Selection: tasklog.Selection{Attempts: []int{1}}}, []tasklog.Stream{stream(1, 0)}, []tasklog.Stream{stream(0, 0), stream(3, 0)}},
		"the last":       {Selection{Selection: tasklog.Selection{Last: true}}, []tasklog.Stream{stream(3, 0), stream(0, 1), stream(4, 0), stream(0, 9)}, []tasklog.Stream{stream(1, 0)}},
		"first and last": {Selection{Selection: tasklog.Selection{Attempts: []int{0}, Last: true}}, []tasklog.Stream{stream(0, 0), stream(3, 0)}, []tasklog.Stream{stream(1, 0)}},
		"stderr":         {Selection{Selection: tasklog.Selection{OnlyStderr: true}}, []tasklog.Stream{errs}, []tasklog.Stream{stream(0, 0)}},
		"stdout":         {Selection{Selection: tasklog.Selection{OnlyStdout: true}}, []tasklog.Stream{stream(0, 0)}, []tasklog.Stream{errs}},
	} {
		t.Run(name, func(t *testing.T) {
			shown := c.l.Of(status, there).Has
			for _, s := range c.shown {
				assert.True(t, shown(s), "%+v", s)
			}
			for _, s := range c.hidden {
				assert.False(t, shown(s), "%+v", s)
			}
		})
	}
}
