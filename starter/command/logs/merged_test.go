package logs

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/page"
)

// Lines that ranks write alike within a second are one, and the order of each stream stays.
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
	assert.Equal(t, []string{"one", "30%", "two", "three"}, texts)
}

func TestSearchedLines(t *testing.T) {
	c := newCollected("Error")
	c.deliver(tasklog.Chunk{Stream: tasklog.Stream{}, Data: []byte("fine\nValueError: x\nERROR\n"), Start: true})
	assert.Len(t, c.byTime(&starter.Status{}), 2)
	assert.Equal(t, "ERROR", c.last[0])
}

// Lines of other hosts have no times. The ranks take turns, so that equal lines become one.
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
