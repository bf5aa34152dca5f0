package logs

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Identical lines from ranks within a second are one, and each stream stays in order.
func TestMerged(t *testing.T) {
	at := time.Unix(1000, 0)
	written := func(rank int, after time.Duration, text string) *line {
		return &line{Stream: tasklog.Stream{Rank: rank}, at: at.Add(after), text: []byte(text)}
	}
	tasks := map[int]page.Task{0: {Name: "chief-0", Tone: page.Culprit}, 1: {Name: "worker-0", Tone: page.Muted}}
	got := merged([]*line{
		written(0, 0, "step 1"), written(1, 0, "step 1"), written(2, time.Millisecond, "step 1"),
		written(1, 2*time.Millisecond, "step 1"), // the same rank again
		written(0, 3*time.Second, "step 1"),      // long after
		written(0, 3*time.Second, "error"),
	}, tasks)
	assert.Equal(t, []page.OutputLine{
		{At: at, Task: "chief-0", Ranks: "0-2", Count: 3, Text: "step 1", Tone: page.Culprit},
		{At: at.Add(2 * time.Millisecond), Task: "worker-0", Rank: 1, Ranks: "1", Count: 1, Text: "step 1", Tone: page.Muted},
		{At: at.Add(3 * time.Second), Task: "chief-0", Ranks: "0", Count: 1, Text: "step 1", Tone: page.Culprit},
		{At: at.Add(3 * time.Second), Task: "chief-0", Ranks: "0", Count: 1, Text: "error", Tone: page.Culprit},
	}, got)
}

// Chunks may end within lines; only the last state of a progress bar is kept.
func TestCollectedLines(t *testing.T) {
	c := newCollected("")
	out, errs := tasklog.Stream{Rank: 1}, tasklog.Stream{Rank: 1, Stderr: true}
	c.deliver(tasklog.Chunk{Stream: out, Data: []byte("one\ntw"), Start: true})
	c.deliver(tasklog.Chunk{Stream: errs, Data: []byte("10%\r20%\r30%\n"), Start: true})
	c.deliver(tasklog.Chunk{Stream: out, Data: []byte("o\n\nthree"), Offset: 6})
	var texts []string
	for _, l := range c.byTime(&starter.Status{}) {
		texts = append(texts, string(l.text))
	}
	assert.Equal(t, []string{"one", "30%", "two", "three"}, texts)
}

func TestSearchedLines(t *testing.T) {
	c := newCollected("Error")
	c.deliver(tasklog.Chunk{Stream: tasklog.Stream{}, Data: []byte("fine\nValueError: x\nERROR\n"), Start: true})
	assert.Len(t, c.byTime(&starter.Status{}), 2)
	assert.Equal(t, "ERROR", c.last[0])
}

// Lines from other hosts lack times. The ranks take turns, so that identical lines become one.
func TestLinesWithoutTimes(t *testing.T) {
	c := newCollected("")
	for rank := range 3 {
		c.deliver(tasklog.Chunk{Stream: tasklog.Stream{Rank: rank}, Data: fmt.Appendf(nil, "rank %d\nstep 1\nstep 2\n", rank), Start: true})
	}
	var texts []string
	for _, l := range merged(c.byTime(&starter.Status{}), nil) {
		texts = append(texts, l.Ranks+": "+l.Text)
	}
	assert.Equal(t, []string{"0: rank 0", "1: rank 1", "2: rank 2", "0-2: step 1", "0-2: step 2"}, texts)
}

// A bare number among task names is a rank.
func TestTasksByRank(t *testing.T) {
	s := &starter.Status{RunID: "iris-1"}
	for rank, name := range []string{"chief-0", "worker-0", "worker-1"} {
		s.Tasks = append(s.Tasks, starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: name, Type: name[:len(name)-2], Rank: rank}})
	}
	names := must.Get(cli.NamesOf(s, []string{"2", "ps-0", "chief-0"}))(t)
	assert.Equal(t, []string{"chief-0", "worker-1", "ps-0"}, names, "the run says that it has no ps-0")
	_, err := cli.NamesOf(s, []string{"7", "1"})
	require.ErrorContains(t, err, "run iris-1 has no task, type, rank or host 7")
	ranks := must.Get((&Selection{Names: []string{"0", "worker-1"}}).ranks(s))(t)
	assert.Equal(t, map[int]bool{0: true, 2: true}, ranks)
}

func TestLogsNameTheAttemptsThatWereRemoved(t *testing.T) {
	there := map[int][]int{0: {0}, 1: {0}, 2: {0, 1, 2}}
	for n := range 20 {
		there[0] = append(there[0], 31+n)
		there[1] = append(there[1], 1+n)
	}
	task := func(typ string, index, rank int) starter.TaskStatus {
		return starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: spec.Task{Type: typ, Index: index}.Name(), Type: typ, Index: index, Rank: rank}}
	}
	s := &starter.Status{Tasks: []starter.TaskStatus{task("ps", 0, 0), task("worker", 0, 1), task("worker", 1, 2)}}
	said := func(selected Selection) string {
		var stderr bytes.Buffer
		l := &Reader{App: &cli.App{Err: &stderr}, Selected: selected, there: there}
		l.sayPruned(s)
		return stderr.String()
	}
	assert.Equal(t, "clusterrun: ps-0: attempts 1 to 30 have been removed; of a task, the first attempt and the latest 20 are kept\n", said(Selection{}))
	assert.Empty(t, said(Selection{Names: []string{"worker"}}))
	assert.Empty(t, said(Selection{Selection: tasklog.Selection{Last: true}}))
}

// The result lacks a directory for a process that was lost with its host. Its output still
// counts as missing, and so does that of the host's other tasks, unless the host has listed its
// output.
func TestOutputOfALostHostIsMissed(t *testing.T) {
	lost := &spec.Exit{ExitCode: -1, Cause: spec.CauseHostLost}
	here := t.TempDir()
	s := &starter.Status{RunID: "iris", State: spec.RunEnded, Result: &spec.RunResult{Tasks: []spec.TaskResult{
		{Name: "worker-0", Rank: 0, Host: "a", Exit: &spec.Exit{LogDir: here}},
		{Name: "worker-1", Rank: 1, Host: "b", Exit: lost},
		{Name: "worker-2", Rank: 2, Host: "b"},
		{Name: "worker-3", Rank: 3, Host: "c"}, // never launched
	}}}
	for _, r := range s.Result.Tasks {
		s.Tasks = append(s.Tasks, starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: r.Name, Type: "worker", Index: r.Rank, Rank: r.Rank, Host: r.Host, State: spec.TaskEnded, Exit: r.Exit}})
	}
	missed := func(l *Reader) (names []string) {
		for _, f := range l.logFiles(s) {
			if f.dir == "" {
				assert.Equal(t, "b", f.host)
				names = append(names, f.name)
			}
		}
		return names
	}
	reader := func() *Reader { return NewReader(&cli.App{}, &starter.Run{ID: "iris"}, Selection{}) }
	assert.Equal(t, []string{"worker-1", "worker-2"}, missed(reader()))

	away := reader()
	away.Hosts["b:1"] = &Host{name: "b", Err: errors.New("connection refused")}
	assert.Equal(t, []string{"worker-1", "worker-2"}, missed(away))

	back := reader()
	back.Hosts["b:1"] = &Host{name: "b"}
	assert.Empty(t, missed(back))
}

// If a group's earlier hosts are unknown, earlier processes may have run on other hosts.
func TestEarlierGenerationsMayBeMissed(t *testing.T) {
	s := &starter.Status{Generation: 1, Tasks: []starter.TaskStatus{
		{TaskStatus: spec.TaskStatus{Name: "worker-0", Rank: 0}}, {TaskStatus: spec.TaskStatus{Name: "worker-1", Rank: 1}},
	}}
	misses := func(unknown bool, there map[int][]int) bool {
		l := NewReader(&cli.App{}, &starter.Run{ID: "iris"}, Selection{})
		l.unknown, l.there = unknown, there
		return len(l.earlier(s)) > 0
	}
	all, some := map[int][]int{0: {0, 1}, 1: {0, 1}}, map[int][]int{0: {0, 1}, 1: {1}}
	assert.False(t, misses(true, all))
	assert.True(t, misses(true, some))
	assert.False(t, misses(false, some), "all hosts were asked")
}

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

	wanted, err := (&Selection{Names: []string{"worker-2", "ps", "evaluator"}}).ranks(status)
	assert.Len(t, wanted, 1, "those that there are are shown all the same")
	assert.EqualError(t, err, "the command line has 2 problems:\nrun iris-1 has no task, type, rank or host worker-2; `clusterrun status iris-1` shows those there are\n"+
		"run iris-1 has no task, type, rank or host evaluator; `clusterrun status iris-1` shows those there are")
	assert.EqualError(t, (&Selection{Names: []string{"worker"}, Selection: tasklog.Selection{Attempts: []int{2}}}).checkAttempts(status, there),
		"--attempt 2: there are logs of attempts [0 1 3]")
	open := *status
	open.Open = true
	assert.NoError(t, (&Selection{Selection: tasklog.Selection{Attempts: []int{2}}}).checkAttempts(&open, there), "it may yet come")
}
