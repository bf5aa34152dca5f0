package tasklog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// collect returns a collector with torch's prefixes.
func collect(t *testing.T, run string, o CollectOptions) *Collector {
	t.Helper()
	o.Prefix = func(rank, _ int) string { return fmt.Sprintf("[trainer%d]:", rank) }
	o.OnError = func(err error) { t.Errorf("collector: %v", err) }
	return Collect(run, o)
}

// All tasks share one file of the lines that contain one of the strings, each with its task's
// prefix.
func TestFilteredFiles_TE26_TE29(t *testing.T) {
	run := t.TempDir()
	c := collect(t, run, CollectOptions{Stdout: []string{"helloA"}, Stderr: []string{"worldA", "B"}})
	for rank, name := range []string{"A", "B"} {
		dir := makeProcess(t, run, 0, rank)
		appendTo(t, dir, StdoutFile, "hello"+name+" stdout from "+name+"\nnoise\n")
		appendTo(t, dir, StderrFile, "world"+name+" stderr from "+name+"\nnoise\n")
	}
	require.NoError(t, c.Stop(t.Context()))
	assert.Equal(t, "[trainer0]:helloA stdout from A\n", must.Read(t, run, "attempt_0", "filtered_stdout.log"))
	assert.ElementsMatch(t, []string{"[trainer0]:worldA stderr from A", "[trainer1]:worldB stderr from B"},
		SplitLines(must.Read(t, run, "attempt_0", "filtered_stderr.log")))
}

// Each attempt has its own files, even if they are empty.
func TestFilteredFilesOfAttempts(t *testing.T) {
	run := t.TempDir()
	appendTo(t, makeProcess(t, run, 0, 0), StdoutFile, "loss 1\n")
	appendTo(t, makeProcess(t, run, 1, 0), StdoutFile, "nothing\n")
	appendTo(t, makeProcess(t, run, 2, 0), StdoutFile, "loss 3, unfinished")
	appendTo(t, makeProcess(t, run, 2, 1), StdoutFile, "loss of another host\n")
	c := collect(t, run, CollectOptions{Stdout: []string{"loss"}, Select: func(rank int) bool { return rank == 0 }})
	require.NoError(t, c.Stop(t.Context()))
	assert.Equal(t, "[trainer0]:loss 1\n", must.Read(t, run, "attempt_0", "filtered_stdout.log"))
	assert.Empty(t, must.Read(t, run, "attempt_1", "filtered_stdout.log"))
	assert.Equal(t, "[trainer0]:loss 3, unfinished", must.Read(t, run, "attempt_2", "filtered_stdout.log"))
	assert.NoFileExists(t, filepath.Join(run, "attempt_0", "filtered_stderr.log"), "nothing is looked for there")
}

// A collector that replaces one killed at any point rewrites the files: lines are neither missing
// nor repeated.
func TestFilteredFilesAreWrittenAnew(t *testing.T) {
	run := t.TempDir()
	dir := makeProcess(t, run, 0, 0)
	o := CollectOptions{Stdout: []string{"loss"}}
	appendTo(t, dir, StdoutFile, "loss 1\nnoise\nlo")
	first := collect(t, run, o)
	eventually(t, "the first line is there", func() bool {
		b, err := os.ReadFile(filepath.Join(run, "attempt_0", "filtered_stdout.log"))
		return err == nil && string(b) == "[trainer0]:loss 1\n"
	})
	require.NoError(t, first.Stop(t.Context()))
	appendTo(t, dir, StdoutFile, "ss 2\n")
	appendTo(t, run, "attempt_0/filtered_stdout.log", "[trainer0]:lo") // the collector was killed within a write
	second := collect(t, run, o)
	appendTo(t, dir, StdoutFile, "loss 3\n")
	require.NoError(t, second.Stop(t.Context()))
	assert.Equal(t, "[trainer0]:loss 1\n[trainer0]:loss 2\n[trainer0]:loss 3\n", must.Read(t, run, "attempt_0", "filtered_stdout.log"))
}

// A line is matched as a whole, even if it is written in pieces.
func TestFilteredLinesAreWhole(t *testing.T) {
	run := t.TempDir()
	dir := makeProcess(t, run, 0, 0)
	c := collect(t, run, CollectOptions{Stdout: []string{"needle"}})
	for _, piece := range []string{"hay ne", "edle", " hay\nhay", "\n", "need\nle\n"} {
		appendTo(t, dir, StdoutFile, piece)
		eventually(t, "it looks", func() bool {
			_, err := os.Stat(filepath.Join(run, "attempt_0", "filtered_stdout.log"))
			return err == nil
		})
	}
	require.NoError(t, c.Stop(t.Context()))
	assert.Equal(t, "[trainer0]:hay needle hay\n", must.Read(t, run, "attempt_0", "filtered_stdout.log"))
}

// Very long lines are matched by their first 64 KiB, and are copied as a whole or not at all. Other
// tasks' lines may interrupt them.
func TestFilteredLongLines(t *testing.T) {
	run := t.TempDir()
	hay := strings.Repeat("x", 300<<10)
	appendTo(t, makeProcess(t, run, 0, 0), StdoutFile, "needle "+hay+"\n"+hay+" needle\n"+"needle "+hay+hay)
	appendTo(t, makeProcess(t, run, 0, 1), StdoutFile, "needle of another\n")
	c := collect(t, run, CollectOptions{Stdout: []string{"needle"}})
	require.NoError(t, c.Stop(t.Context()))
	text := must.Read(t, run, "attempt_0", "filtered_stdout.log")
	assert.Contains(t, "\n"+text, "\n[trainer1]:needle of another\n")
	text = strings.Replace(text, "[trainer1]:needle of another\n", "", 1)
	text = strings.ReplaceAll(text, "\n[trainer0]:xx", "xx") // after the line was interrupted
	text = strings.TrimSuffix(text, "\n")                    // or ended for the other task's line
	assert.True(t, text == "[trainer0]:needle "+hay+"\n[trainer0]:needle "+hay+hay, "%d bytes: %.40q", len(text), text)
}

// Two hosts may share a directory.
func TestFilteredFilesOfAHost(t *testing.T) {
	run := t.TempDir()
	appendTo(t, makeProcess(t, run, 0, 0), StdoutFile, "loss\n")
	c := collect(t, run, CollectOptions{Stdout: []string{"loss"}, Name: "host/a"})
	require.NoError(t, c.Stop(t.Context()))
	assert.Equal(t, "[trainer0]:loss\n", must.Read(t, run, "attempt_0", "filtered_stdout.host%2Fa.log"))
}

// An attempt's collected lines are removed with its last files.
func TestPruneOfFilteredFiles(t *testing.T) {
	run := t.TempDir()
	for n := range 3 {
		for rank := range 2 {
			appendTo(t, makeProcess(t, run, n, rank), StdoutFile, "loss\n")
		}
	}
	c := collect(t, run, CollectOptions{Stdout: []string{"loss"}})
	eventually(t, "the last attempt", func() bool {
		b, _ := os.ReadFile(filepath.Join(run, "attempt_2", "filtered_stdout.log"))
		return bytes.Count(b, []byte("\n")) == 2
	})
	require.NoError(t, Prune(run, 0, 1))
	assert.FileExists(t, filepath.Join(run, "attempt_1", "filtered_stdout.log"), "another task has files there")
	require.NoError(t, Prune(run, 1, 1))
	numbers := must.Get(attempts(run))(t)
	assert.Equal(t, []int{0, 2}, numbers)
	require.NoError(t, c.Stop(t.Context()))
}
