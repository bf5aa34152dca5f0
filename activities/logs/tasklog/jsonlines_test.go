package tasklog

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// asLines returns the lines of a run, decoded from JSON.
func asLines(t *testing.T, run string) (lines []Line) {
	t.Helper()
	var out bytes.Buffer
	j := NewJSONLines(&out, func(rank int) (string, string) { return "", "worker-" + string(rune('0'+rank)) })
	f := Follow(run, j.Deliver, FollowOptions{Hold: WholeLines})
	require.NoError(t, f.Stop(t.Context()))
	require.NoError(t, j.Close())
	for text := range strings.Lines(out.String()) {
		var l Line
		require.NoError(t, json.Unmarshal([]byte(text), &l), text)
		lines = append(lines, l)
	}
	return lines
}

func TestJSONLines(t *testing.T) {
	run := t.TempDir()
	dir := makeProcess(t, run, 2, 1)
	appendTo(t, dir, StdoutFile, "<a> \"b\"\n\nbad \xff\xfe\nunfinished")
	appendTo(t, dir, StderrFile, "ends within a character: \xc3")
	assert.Equal(t, []Line{
		{Task: "worker-1", Attempt: 2, Stream: "stdout", Text: `<a> "b"`},
		{Task: "worker-1", Attempt: 2, Stream: "stdout"},
		{Task: "worker-1", Attempt: 2, Stream: "stdout", Text: "bad \uFFFD\uFFFD"},
		{Task: "worker-1", Attempt: 2, Stream: "stdout", Text: "unfinished", Partial: true},
		{Task: "worker-1", Attempt: 2, Stream: "stderr", Text: "ends within a character: ", Partial: true},
		{Task: "worker-1", Attempt: 2, Stream: "stderr", Text: "\uFFFD", Partial: true},
	}, asLines(t, run))
}

// A line beyond all bounds is split into parts, and no character is torn.
func TestJSONLinesOfALongLine(t *testing.T) {
	run := t.TempDir()
	dir := makeProcess(t, run, 0, 0)
	long := "x" + strings.Repeat("é", 1<<20)
	appendTo(t, dir, StdoutFile, long+"\nshort\n")
	lines := asLines(t, run)
	var text strings.Builder
	for i, l := range lines {
		if i < len(lines)-2 {
			assert.True(t, l.Partial)
		}
		text.WriteString(l.Text)
	}
	assert.Greater(t, len(lines), 3)
	assert.Equal(t, long+"short", text.String())
	assert.False(t, lines[len(lines)-2].Partial)
	assert.Equal(t, "short", lines[len(lines)-1].Text)
}

// A line that is written slowly is still one line.
func TestJSONLinesWaitForTheEndOfALine(t *testing.T) {
	run := t.TempDir()
	dir := makeProcess(t, run, 0, 0)
	c := &collector{}
	f := Follow(run, c.add, FollowOptions{Hold: WholeLines})
	appendTo(t, dir, StdoutFile, "one\ntw")
	appendTo(t, dir, StderrFile, "later\n")
	eventually(t, "what was written later is there", func() bool { return c.text(Stream{Stderr: true}) == "later\n" })
	assert.Equal(t, "one\n", c.text(Stream{}))
	appendTo(t, dir, StdoutFile, "o\n")
	eventually(t, "the second, too", func() bool { return c.text(Stream{}) == "one\ntwo\n" })
	stop(t, f)
}
