package tasklog

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// filter filters with torch's prefixes.
func filter(t *testing.T, run string, o FilterOptions) {
	t.Helper()
	o.Prefix = func(rank, _ int) string { return fmt.Sprintf("[trainer%d]:", rank) }
	if o.Select == nil {
		o.Select = func(int) bool { return true }
	}
	require.NoError(t, Filter(t.Context(), run, o))
}

// All tasks share one file of the lines that contain one of the strings, each with its task's
// prefix.
func TestFilteredFiles(t *testing.T) {
	run := t.TempDir()
	for rank, name := range []string{"A", "B"} {
		dir := makeProcess(t, run, 0, rank)
		appendTo(t, dir, StdoutFile, "hello"+name+" stdout from "+name+"\nnoise\n")
		appendTo(t, dir, StderrFile, "world"+name+" stderr from "+name+"\nnoise\n")
	}
	for range 2 { // a release may be repeated
		filter(t, run, FilterOptions{Stdout: []string{"helloA"}, Stderr: []string{"worldA", "B"}})
		assert.Equal(t, "[trainer0]:helloA stdout from A\n", must.Read(t, run, "attempt_0", "filtered_stdout.log"))
		assert.Equal(t, "[trainer0]:worldA stderr from A\n[trainer1]:worldB stderr from B\n", must.Read(t, run, "attempt_0", "filtered_stderr.log"))
	}
}

// Each attempt has its own files, even if they are empty.
func TestFilteredFilesOfAttempts(t *testing.T) {
	run := t.TempDir()
	appendTo(t, makeProcess(t, run, 0, 0), StdoutFile, "loss 1\n")
	appendTo(t, makeProcess(t, run, 1, 0), StdoutFile, "nothing\n")
	appendTo(t, makeProcess(t, run, 2, 0), StdoutFile, "loss 3, unfinished")
	appendTo(t, makeProcess(t, run, 2, 1), StdoutFile, "loss of another host\n")
	makeProcess(t, run, 2, 2) // its output was not redirected
	filter(t, run, FilterOptions{Stdout: []string{"loss"}, Select: func(rank int) bool { return rank != 1 }})
	assert.Equal(t, "[trainer0]:loss 1\n", must.Read(t, run, "attempt_0", "filtered_stdout.log"))
	assert.Empty(t, must.Read(t, run, "attempt_1", "filtered_stdout.log"))
	assert.Equal(t, "[trainer0]:loss 3, unfinished\n", must.Read(t, run, "attempt_2", "filtered_stdout.log"))
	assert.NoFileExists(t, filepath.Join(run, "attempt_0", "filtered_stderr.log"), "nothing is looked for there")
}

func TestFilteredLongLines(t *testing.T) {
	run := t.TempDir()
	hay := strings.Repeat("x", 300<<10)
	appendTo(t, makeProcess(t, run, 0, 0), StdoutFile, "needle "+hay+"\n"+hay+" needle\n"+"needle\n")
	filter(t, run, FilterOptions{Stdout: []string{"needle"}})
	text := must.Read(t, run, "attempt_0", "filtered_stdout.log")
	assert.Len(t, text, len("[trainer0]:\n[trainer0]:needle\n")+maxHeld)
}

// Two hosts may share a directory.
func TestFilteredFilesOfAHost(t *testing.T) {
	run := t.TempDir()
	appendTo(t, makeProcess(t, run, 0, 0), StdoutFile, "loss\n")
	filter(t, run, FilterOptions{Stdout: []string{"loss"}, Name: "host/a"})
	assert.Equal(t, "[trainer0]:loss\n", must.Read(t, run, "attempt_0", "filtered_stdout.host%2Fa.log"))
}
