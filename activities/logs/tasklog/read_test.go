package tasklog

import (
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
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer f.Close()
	// The file has a tebibyte, nearly all of it a hole.
	_, err = f.WriteAt([]byte("\nlast\nlines\n"), 1<<40)
	require.NoError(t, err)
	start := time.Now()
	assert.Equal(t, "last\nlines", LastLines(path, 2, 1000))
	assert.Less(t, time.Since(start), time.Minute)

	// A line that the window cuts is not shown.
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

// TE-60, SEED-85: torch's timestamps are whole seconds, so that any two failures within a
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
	big := fileWith(t, "")
	require.NoError(t, os.Truncate(big, 10<<30))
	_, err := ReadErrorFile(big)
	assert.EqualError(t, err, "error file "+big+" is too large: it has 10737418240 bytes; the limit is 1048576")
}

func TestReadResult(t *testing.T) {
	for content, want := range map[string]string{
		`{"accuracy": 0.97, "n": [1, 2]}` + "\n": `{"accuracy":0.97,"n":[1,2]}`,
		`null`:                                   `null`,
		` "text" `:                               `"text"`,
		`3`:                                      `3`,
	} {
		got, err := ReadResult(fileWith(t, content), 100)
		require.NoError(t, err, content)
		assert.Equal(t, want, string(got))
	}
	for _, content := range []string{"", " \n"} {
		got, err := ReadResult(fileWith(t, content), 100)
		require.NoError(t, err)
		assert.Nil(t, got, "no value")
	}
	for content, want := range map[string]string{
		"NaN":       "is not one JSON value: invalid character 'N'",
		"1 2":       "is not one JSON value: invalid character '2' after top-level value",
		"\"\xff\"":  "is not UTF-8",
		"{\"a\": ":  "is not one JSON value: unexpected end of JSON input",
		"[1,2,3,4]": "is too large: it has 9 bytes; the limit is 8",
	} {
		path := fileWith(t, content)
		_, err := ReadResult(path, 8)
		assert.ErrorContains(t, err, "result file "+path+" "+want)
	}
	got, err := ReadResult(fileWith(t, "12345678"), 8)
	require.NoError(t, err)
	assert.Equal(t, "12345678", string(got), "just as long as it may be")
}

// pythonWithTorch is the interpreter for which distributions install their package of torch.
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
	report, err := ReadErrorFile(path)
	require.NoError(t, err)
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
