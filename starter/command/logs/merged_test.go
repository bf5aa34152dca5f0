package logs

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/files"
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
	named := func(name string) *starter.TaskStatus {
		return &starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: name}}
	}
	tasks := map[int]page.Task{0: {TaskStatus: named("chief-0"), Tone: page.Culprit}, 1: {TaskStatus: named("worker-0"), Tone: page.Muted}}
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
	said := func(selected files.Selection) string {
		var stderr bytes.Buffer
		sayPruned(&cli.App{Err: &stderr}, s, &selected, there)
		return stderr.String()
	}
	assert.Equal(t, "clusterrun: ps-0: attempts 1 to 30 have been removed; each task's first attempt and latest 20 attempts are kept\n", said(files.Selection{}))
	assert.Empty(t, said(files.Selection{Names: []string{"worker"}}))
	assert.Empty(t, said(files.Selection{Selection: tasklog.Selection{Last: true}}))
}

func TestAttemptsOnTheCommandLine(t *testing.T) {
	o := logsOptions{attempts: []string{"0", "last", "12"}}
	require.NoError(t, o.parseAttempts())
	assert.Equal(t, []int{0, 12}, o.selected.Attempts)
	assert.True(t, o.selected.Last)
	for _, value := range []string{"-1", "first", ""} {
		o := logsOptions{attempts: []string{value}}
		assert.ErrorContains(t, o.parseAttempts(), "or last", value)
	}
}

func TestAttemptsThatThereAreNot(t *testing.T) {
	there := map[int][]int{0: {0, 1, 3}, 1: {0}, 2: {0}}
	status := &starter.Status{Tasks: []starter.TaskStatus{
		{TaskStatus: spec.TaskStatus{Name: "worker-0", Type: "worker", Rank: 0}}, {TaskStatus: spec.TaskStatus{Name: "ps-0", Type: "ps", Rank: 2}},
	}}
	selected := &files.Selection{Names: []string{"worker"}, Selection: tasklog.Selection{Attempts: []int{2}}}
	assert.EqualError(t, checkAttempts(status, selected, there), "--attempt 2: only the attempts [0 1 3] have logs")
	open := *status
	open.Open = true
	assert.NoError(t, checkAttempts(&open, selected, there), "it may yet come")
}
