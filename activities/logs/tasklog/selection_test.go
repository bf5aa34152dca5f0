package tasklog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSelection(t *testing.T) {
	out, err := Stream{Rank: 1, Attempt: 2}, Stream{Rank: 1, Attempt: 2, Stderr: true}
	for _, c := range []struct {
		Selection
		out, err bool
	}{
		{Selection{}, true, true},
		{Selection{Ranks: []int{}}, false, false},
		{Selection{Ranks: []int{0, 1}, OnlyStdout: true}, true, false},
		{Selection{OnlyStderr: true}, false, true},
		{Selection{Attempts: []int{0}}, false, false},
		{Selection{Attempts: []int{0, 2}}, true, true},
		{Selection{Last: true}, true, true},
		{Selection{Last: true, Latest: map[int]int{1: 3}}, false, false},
		{Selection{Last: true, Latest: map[int]int{1: 3}, Attempts: []int{2}}, true, true},
		{Selection{Last: true, Latest: map[int]int{1: 2}}, true, true},
	} {
		assert.Equal(t, c.out, c.Has(out), "%+v", c.Selection)
		assert.Equal(t, c.err, c.Has(err), "%+v", c.Selection)
	}
}

func TestStartOfLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), StdoutFile)
	assert.Zero(t, startOfLastLines(path, 1))
	long := strings.Repeat("x", readSize-1)
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 1, ""},
		{"one", 1, "one"},
		{"one\n", 1, "one\n"},
		{"one\ntwo\nthree\n", 1, "three\n"},
		{"one\ntwo\nthree\n", 2, "two\nthree\n"},
		{"one\ntwo\nthree\n", 3, "one\ntwo\nthree\n"},
		{"one\ntwo\nthree\n", 9, "one\ntwo\nthree\n"},
		{"one\ntwo\nthr", 2, "two\nthr"},
		{"\n\n\n", 2, "\n\n"},
		{"one\n" + long + "\n" + long + "\ntwo\n", 2, long + "\ntwo\n"},
		{"one\n" + long + long + "\n", 1, long + long + "\n"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o644))
		assert.Equal(t, c.want, c.text[startOfLastLines(path, c.n):])
	}
}
