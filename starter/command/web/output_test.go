package web

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func statusOf(names ...string) *starter.Status {
	s := &starter.Status{RunID: "iris"}
	for rank, name := range names {
		kind, index, err := spec.ParseTaskName(name)
		if err != nil {
			panic(err)
		}
		s.Tasks = append(s.Tasks, starter.TaskStatus{TaskStatus: spec.TaskStatus{Name: name, Type: kind, Index: index, Rank: rank}})
	}
	return s
}

func TestChosenTasks(t *testing.T) {
	s := statusOf("chief-0", "worker-0", "worker-1", "worker-2")
	for ranks, want := range map[string][]string{
		"":                 nil,
		"0":                {"chief-0"},
		"1-2":              {"worker-0", "worker-1"},
		" 3 , 0 ":          {"chief-0", "worker-2"},
		"2-99":             {"worker-1", "worker-2"},
		"worker":           {"worker-0", "worker-1", "worker-2"},
		"chief-0,worker-1": {"chief-0", "worker-1"},
	} {
		names, err := outputQuery{page.OutputFilter{Ranks: ranks}}.names(s)
		require.NoError(t, err, ranks)
		assert.Equal(t, want, names, ranks)
	}
	for _, ranks := range []string{"4", "7-9", "ps", "3-1", "<b>", "1-"} {
		_, err := outputQuery{page.OutputFilter{Ranks: ranks}}.names(s)
		assert.Error(t, err, ranks)
	}
}

func TestRangesOf(t *testing.T) {
	assert.Equal(t, "0-3,8,10-11", rangesOf([]int{8, 0, 3, 1, 2, 11, 10}))
	assert.Equal(t, "5", rangesOf([]int{5}))
}

// Chunks may end within lines; progress bars have only their last state.
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
	assert.Equal(t, []string{"one", "two", "30%", "three"}, texts)
}

func TestSearchedLines(t *testing.T) {
	c := newCollected("Error")
	c.deliver(tasklog.Chunk{Stream: tasklog.Stream{}, Data: []byte("fine\nValueError: x\nERROR\n"), Start: true})
	assert.Len(t, c.byTime(&starter.Status{}), 2)
	assert.Equal(t, "ERROR", c.last[0])
}

// Equal lines of several ranks within a second are one; those of one rank are not.
func TestMergedLines(t *testing.T) {
	noon := time.Unix(1000, 0)
	of := func(rank int, at time.Time, text string) *line {
		return &line{Stream: tasklog.Stream{Rank: rank}, at: at, text: []byte(text)}
	}
	tasks := map[int]page.Task{0: {Rank: 0, Name: "worker-0", Tone: page.Culprit}, 1: {Rank: 1, Name: "worker-1"}, 2: {Rank: 2, Name: "worker-2"}}
	lines := merged([]*line{
		of(0, noon, "ready"), of(1, noon, "ready"), of(2, noon.Add(900*time.Millisecond), "ready"),
		of(0, noon, "step"), of(0, noon, "step"),
		of(1, noon.Add(5*time.Second), "ready"),
	}, tasks)
	var short []page.OutputLine
	for _, l := range lines {
		short = append(short, page.OutputLine{Task: l.Task, Ranks: l.Ranks, Count: l.Count, Text: l.Text})
	}
	assert.Equal(t, []page.OutputLine{
		{Task: "worker-0", Ranks: "0-2", Count: 3, Text: "ready"},
		{Task: "worker-0", Ranks: "0", Count: 1, Text: "step"},
		{Task: "worker-0", Ranks: "0", Count: 1, Text: "step"},
		{Task: "worker-1", Ranks: "1", Count: 1, Text: "ready"},
	}, short)
	assert.Equal(t, page.Culprit, lines[0].Tone)
}

func TestFileName(t *testing.T) {
	assert.Equal(t, "a_b_c-worker-0", fileName("a/b\"c-worker-0"))
	assert.Equal(t, "___", fileName("\r\n\x00"))
}
