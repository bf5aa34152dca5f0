package logs

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func TestAttemptsOnTheCommandLine(t *testing.T) {
	var l Selection
	require.NoError(t, l.parseAttempts([]string{"0", "last", "12"}))
	assert.Equal(t, []int{0, 12}, l.Attempts)
	assert.True(t, l.Last)
	for _, value := range []string{"-1", "first", ""} {
		assert.ErrorContains(t, l.parseAttempts([]string{value}), "or last", value)
	}
}

func TestWhichLogs(t *testing.T) {
	run := t.TempDir()
	for _, p := range [][2]int{{0, 0}, {1, 0}, {3, 0}, {0, 1}, {0, 2}} {
		require.NoError(t, tasklog.MakeDir(tasklog.ProcessDir(run, p[0], p[1])))
	}
	task := func(typ string, index, rank int) starter.TaskStatus {
		return starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: spec.TaskName(typ, index), Type: typ, Index: index, Rank: rank}}
	}
	status := &starter.Status{RunID: "iris-1", Tasks: []starter.TaskStatus{task("worker", 0, 0), task("worker", 1, 1), task("ps", 0, 2)}}
	there, err := tasklog.Attempts(run)
	require.NoError(t, err)
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

	wanted, err := (&Selection{Names: []string{"worker-2", "ps", "evaluator"}}).ranks(status)
	assert.Len(t, wanted, 1, "those that there are are shown all the same")
	assert.EqualError(t, err, "the command line has 2 problems:\nrun iris-1 has no task and no type worker-2; `clusterrun status iris-1` shows those there are\n"+
		"run iris-1 has no task and no type evaluator; `clusterrun status iris-1` shows those there are")
	assert.EqualError(t, (&Selection{Names: []string{"worker"}, Selection: tasklog.Selection{Attempts: []int{2}}}).checkAttempts(status, there),
		"--attempt 2: there are logs of attempts [0 1 3]")
	open := *status
	open.Open = true
	assert.NoError(t, (&Selection{Selection: tasklog.Selection{Attempts: []int{2}}}).checkAttempts(&open, there), "it may yet come")
}
