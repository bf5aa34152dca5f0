package tasklog

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

func fileWith(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestLastLines(t *testing.T) {
	for _, c := range []struct {
		name, content string
		n, max        int
		want          string
	}{
		{"nothing", "", 3, 100, ""},
		{"fewer", "a\nb\n", 3, 100, "a\nb"},
		{"more", "a\nb\nc\nd\n", 2, 100, "c\nd"},
		{"no newline at the end", "a\nb", 1, 100, "b"},
		{"empty lines at the end", "a\nb\n\n \n\n", 1, 100, "b"},
		{"empty lines within", "a\n\nb\n", 3, 100, "a\n\nb"},
		{"bytes cut whole lines", "aaaa\nbbbb\ncccc\n", 3, 10, "bbbb\ncccc"},
		{"one long line", "0123456789" + strings.Repeat("-", 50) + "9876543210", 3, 25, "0123456789 … 9876543210"},
		{"long line, runes", strings.Repeat("é", 40), 3, 21, "éééé … éééé"},
		{"terminal colours", "\x1b[1;31merror\x1b[0m: \x1b]0;title\x07bad\x1b(B\n", 3, 100, "error: bad"},
		{"progress bar", "10%\r50%\r100%\r\nnext\r\n", 3, 100, "100%\nnext"},
		{"control characters", "a\x00b\x07c\td\x7f\u0085e\n", 3, 100, "abc\tde"},
		{"invalid UTF-8", "a\xff\xfeb\n", 3, 100, "a\uFFFDb"},
	} {
		got := LastLines(fileWith(t, c.content), c.n, c.max)
		assert.Equal(t, c.want, got, c.name)
		assert.LessOrEqual(t, len(got), c.max, c.name)
		assert.True(t, utf8.ValidString(got), c.name)
	}
}

func TestLastLinesOfWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for _, path := range []string{filepath.Join(dir, "missing"), dir, "/dev/null", "/dev/zero", fifo} {
		assert.Equal(t, "", LastLines(path, 5, 100), path)
	}
}

func TestLastLinesReadsOnlyTheEnd(t *testing.T) {
	path := fileWith(t, "")
	f := must.Get(os.OpenFile(path, os.O_WRONLY, 0))(t)
	defer f.Close()
	// The file has a tebibyte, nearly all of it a hole.
	_, err := f.WriteAt([]byte("\nlast\nlines\n"), 1<<40)
	require.NoError(t, err)
	start := time.Now()
	assert.Equal(t, "last\nlines", LastLines(path, 2, 1000))
	assert.Less(t, time.Since(start), time.Minute)

	// A line cut by the window is not shown.
	path = fileWith(t, strings.Repeat("x", 10_000)+"\nwhole\n")
	assert.Equal(t, "whole", LastLines(path, 5, 1000))
}

func TestSplitLines(t *testing.T) {
	assert.Nil(t, SplitLines(""))
	assert.Equal(t, []string{"a", "", "b"}, SplitLines("a\n\nb\n"))
	assert.Equal(t, []string{"", ""}, SplitLines("\n\n"))
}

// Error files have two forms, with and without a timestamp.
func TestReadErrorFile_TE58_TE59_TE60_TE64_SEED87_SEED88(t *testing.T) {
	for content, want := range map[string]Report{
		`{"message": "bad", "timestamp": 10}`:                     {Message: "bad", Timestamp: time.Unix(10, 0)},
		`{"message": "bad", "timestamp": "10"}`:                   {Message: "bad", Timestamp: time.Unix(10, 0)},
		`{"message": "bad", "timestamp": 10.25}`:                  {Message: "bad", Timestamp: time.UnixMilli(10_250)},
		`{"message": "bad", "timestamp": 1700000000.123456}`:      {Message: "bad", Timestamp: time.UnixMicro(1_700_000_000_123_456)},
		`{"message": "bad"}`:                                      {Message: "bad"},
		`{"message": "bad", "timestamp": 0}`:                      {Message: "bad"},
		`{"message": "bad\u001b[0m\nsecond", "more": [1]}` + "\n": {Message: "bad\nsecond"},
		`{"message": {"message": "ValueError: x", "errorCode": 1, "extraInfo": {"py_callstack": "Traceback", "timestamp": "1700000000"}}}`: {
			Message: "ValueError: x", Callstack: "Traceback", Timestamp: time.Unix(1_700_000_000, 0)},
		`{"message": {"message": "x"}}`: {Message: "x"},
	} {
		path := fileWith(t, content)
		written := time.Unix(1_700_000_100, 5)
		require.NoError(t, os.Chtimes(path, written, written))
		got, err := ReadErrorFile(path)
		require.NoError(t, err, content)
		want.Written = written
		assert.Equal(t, &want, got, content)
	}
}

// Torch's timestamps are whole seconds, so that any two failures within a
// second would be a tie.
func TestWhenAnErrorHappened(t *testing.T) {
	second := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct {
		stamp, written, want time.Duration
	}{
		"the file is finer":          {0, 300 * time.Millisecond, 300 * time.Millisecond},
		"written a little later":     {0, 1999 * time.Millisecond, 1999 * time.Millisecond},
		"touched much later":         {0, 2001 * time.Millisecond, 0},
		"written before, they say":   {0, -time.Millisecond, 0},
		"the program's own fraction": {250 * time.Millisecond, 300 * time.Millisecond, 250 * time.Millisecond},
	} {
		r := Report{Timestamp: second.Add(c.stamp), Written: second.Add(c.written)}
		assert.Equal(t, second.Add(c.want), r.When(), name)
	}
	assert.Equal(t, second, (&Report{Written: second}).When(), "no timestamp")
}

func TestReadMalformedErrorFile_TE57(t *testing.T) {
	for content, want := range map[string]string{
		``:                                   "unexpected end of JSON input",
		`{"timestamp": 10}`:                  `it has no "message"`,
		`{"message": null}`:                  `it has no "message"`,
		`{"message": {"extraInfo": {}}}`:     `its "message" has no "message"`,
		`{"message": 3}`:                     "cannot unmarshal number",
		`{"message": "x", "timestamp": []}`:  `its "timestamp" [] is not a number of seconds`,
		`{"message": "x", "timestamp": "y"}`: `its "timestamp" "y" is not a number of seconds`,
		`{"message": "x", "timestamp": NaN}`: "invalid character 'N'",
		`{"message": "cut of`:                "unexpected end of JSON input",
		`just text`:                          `it starts with "just text"`,
		`{"message": "x"} {}`:                "after top-level value",
	} {
		path := fileWith(t, content)
		got, err := ReadErrorFile(path)
		assert.Nil(t, got, content)
		assert.ErrorContains(t, err, "error file "+path+" is malformed: ", content)
		assert.ErrorContains(t, err, want, content)
	}
}

func TestReadWhatIsNotThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing")
	report, err := ReadErrorFile(path)
	assert.NoError(t, err)
	assert.Nil(t, report)
	value, err := ReadResult(path, 100)
	assert.NoError(t, err)
	assert.Nil(t, value)
}

func TestReadWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	for _, path := range []string{dir, fifo} {
		_, err := ReadErrorFile(path)
		assert.EqualError(t, err, "error file "+path+" is not a file")
		_, err = ReadResult(path, 100)
		assert.EqualError(t, err, "result file "+path+" is not a file")
	}
	// A link may lead to another user's file.
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(fileWith(t, `{"message": "the secret"}`), link))
	_, err := ReadErrorFile(link)
	assert.ErrorIs(t, err, syscall.ELOOP)
	_, err = ReadResult(link, 100)
	assert.ErrorIs(t, err, syscall.ELOOP)
	_, err = openToRead(link)
	assert.ErrorIs(t, err, syscall.ELOOP)
	big := fileWith(t, "")
	require.NoError(t, os.Truncate(big, 10<<30))
	_, err = ReadErrorFile(big)
	assert.EqualError(t, err, "error file "+big+" is too large: it has 10737418240 bytes; the limit is 1048576")
}

func TestReadResult(t *testing.T) {
	for content, want := range map[string]string{
		`{"accuracy": 0.97, "n": [1, 2]}` + "\n": `{"accuracy":0.97,"n":[1,2]}`,
		`null`:                                   `null`,
		` "text" `:                               `"text"`,
		`3`:                                      `3`,
		`NaN`:                                    `{"$clusterrun.number":"NaN"}`,
		`{"loss": NaN, "NaN\"": "-Infinity"}`:    `{"loss":{"$clusterrun.number":"NaN"},"NaN\"":"-Infinity"}`,
		`[-Infinity,Infinity, -1]`:               `[{"$clusterrun.number":"-Infinity"},{"$clusterrun.number":"Infinity"},-1]`,
	} {
		got, err := ReadResult(fileWith(t, content), 100)
		require.NoError(t, err, content)
		assert.Equal(t, want, string(got))
	}
	for _, content := range []string{"", " \n"} {
		got := must.Get(ReadResult(fileWith(t, content), 100))(t)
		assert.Nil(t, got, "no value")
	}
	for content, want := range map[string]string{
		"nan":       "is not one JSON value: invalid character 'a'",
		"NaNs":      "is not one JSON value: invalid character 's'",
		"NaN":       "is too large",
		"1 2":       "is not one JSON value: invalid character '2' after top-level value",
		"\"\xff\"":  "is not UTF-8",
		"{\"a\": ":  "is not one JSON value: unexpected end of JSON input",
		"[1,2,3,4]": "is too large: it has 9 bytes; the limit is 8",
	} {
		path := fileWith(t, content)
		_, err := ReadResult(path, 8)
		assert.ErrorContains(t, err, "result file "+path+" "+want)
	}
	got := must.Get(ReadResult(fileWith(t, "12345678"), 8))(t)
	assert.Equal(t, "12345678", string(got), "just as long as it may be")
}

// pythonWithTorch is the interpreter that distributions install their torch package for.
const pythonWithTorch = "/usr/bin/python3"

// The files that the real @record writes are read (TE-64, TE-66, TE-67, TE-68).
func TestReadErrorFileOfTorch(t *testing.T) {
	if testing.Short() || exec.Command(pythonWithTorch, "-c", "import torch.distributed.elastic").Run() != nil {
		t.Skip("needs torch for " + pythonWithTorch)
	}
	record := func(body string, env ...string) error {
		cmd := exec.Command(pythonWithTorch, "-c", `
from torch.distributed.elastic.multiprocessing.errors import record
import sys
@record
def main():
    `+body+`
main()`)
		cmd.Env = append(os.Environ(), env...)
		return cmd.Run()
	}
	file := func() (path, variable string) {
		path = filepath.Join(t.TempDir(), ErrorFile)
		return path, "TORCHELASTIC_ERROR_FILE=" + path
	}

	path, variable := file()
	require.Error(t, record(`raise ValueError("the loss is not a number")`, variable), "TE-64: it propagates")
	report := must.Get(ReadErrorFile(path))(t)
	require.NotNil(t, report)
	assert.Equal(t, "ValueError: the loss is not a number", report.Message)
	assert.Contains(t, report.Callstack, "Traceback (most recent call last)")
	assert.WithinDuration(t, time.Now(), report.Timestamp, time.Minute)
	assert.Equal(t, report.Written, report.When(), "whole seconds, made finer")

	path, variable = file()
	require.NoError(t, record(`sys.exit(0)`, variable))
	assert.NoFileExists(t, path, "TE-66")

	path, variable = file()
	require.Error(t, record(`sys.exit(3)`, variable))
	assert.NoFileExists(t, path, "TE-67")

	require.Error(t, record(`raise ValueError("nobody asks")`, "TORCHELASTIC_ERROR_FILE="), "TE-68")
}

func TestWrittenBy(t *testing.T) {
	run := t.TempDir()
	dir := ProcessDir(run, 0, 3)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, TimesFile), []byte("1000 10 0\n2000 10 5\n3000 40 5\n"), 0o600))
	by := WrittenBy(run)
	for offset, want := range map[int64]int64{0: 1000, 10: 1000, 11: 3000, 40: 3000} {
		assert.Equal(t, time.Unix(0, want), by(Stream{Rank: 3}, offset), offset)
	}
	assert.Equal(t, time.Unix(0, 2000), by(Stream{Rank: 3, Stderr: true}, 5))
	assert.Zero(t, by(Stream{Rank: 3}, 41), "written since")
	assert.Zero(t, by(Stream{Rank: 4}, 1), "nothing is recorded")
}

func TestTraceFile(t *testing.T) {
	dir := t.TempDir()
	assert.Empty(t, TraceFile(filepath.Join(dir, "missing")))
	begun := time.Now()
	write := func(name, text string, age time.Duration) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(path, begun, begun.Add(-age)))
		return path
	}
	write(StderrFile, "text", 0)
	write(TracePrefix+"0", "", 0)
	require.NoError(t, os.Mkdir(filepath.Join(dir, TracePrefix+"1"), 0o700))
	assert.Empty(t, TraceFile(dir), "neither output, nor an empty file, nor a directory")
	older := write(TracePrefix+"2", "trace", time.Minute)
	assert.Equal(t, older, TraceFile(dir))
	latest := write(TracePrefix+"17", "trace", time.Second)
	assert.Equal(t, latest, TraceFile(dir))
}

func nested(deep int) string { return strings.Repeat("[", deep) + strings.Repeat("]", deep) }

func TestValue(t *testing.T) {
	for text, want := range map[string]string{
		` {"a": 1, "a": [2, "]["]}`: `{"a":1,"a":[2,"]["]}`, // the reader decides what a repeated name means
		`"\ud800\"[[["`:             `"\ud800\"[[["`,
		`1e400`:                     `1e400`,
		nested(maxDepth):            nested(maxDepth),
		"[" + strings.Repeat("[],", 2000) + "{}]": "[" + strings.Repeat("[],", 2000) + "{}]",
	} {
		got, err := Value([]byte(text))
		require.NoError(t, err, text)
		assert.Equal(t, want, string(got))
	}
	for text, want := range map[string]string{
		"":                   "is not one JSON value: unexpected end of JSON input",
		"NaN":                "is not one JSON value: invalid character 'N'",
		"-Infinity":          "is not one JSON value: invalid character 'I'",
		"1 2":                "is not one JSON value: invalid character '2' after top-level value",
		"\"\xff\"":           "is not UTF-8",
		nested(maxDepth + 1): "has lists and objects nested to a depth of 501; the limit is 500",
		strings.Repeat(`{"a":`, 9999) + "1" + strings.Repeat("}", 9999): "a depth of 9999; the limit is 500",
		nested(10001): "exceeded max depth",
	} {
		_, err := Value([]byte(text))
		assert.ErrorContains(t, err, want, text[:min(len(text), 50)])
	}
}

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

// asLines returns a run's lines, decoded from JSON.
func asLines(t *testing.T, run string) (lines []Line) {
	t.Helper()
	var out bytes.Buffer
	j := NewJSONLines(&out, func(rank int) string { return "worker-" + string(rune('0'+rank)) })
	f := Follow(run, j.Deliver, FollowOptions{Hold: WholeLines})
	require.NoError(t, f.Stop(t.Context()))
	require.NoError(t, j.Close())
	for text := range strings.Lines(out.String()) {
		l := must.JSON[Line](t, text)
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

// A line beyond all limits is split into parts, but between characters.
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
