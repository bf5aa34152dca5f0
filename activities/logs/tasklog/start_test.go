package tasklog

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/taskmetrics"
)

func TestStart(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.py"), []byte("pass"), 0o644))
	s := &Start{Version: "1", Dir: dir, Files: FilesOf("/bin/sh", []string{"-x", "train.py", "nosuch", "."}, dir)}
	s.Variables(
		[]string{"HOME=/root", "RANK=0", "PATH=/other", "MY_TOKEN=xyzzy", "LENT=hush", "COPY=hush", "DB=postgres://me:plugh@db/x", "LONG=" + strings.Repeat("x", 2000)},
		[]string{"HOME=/root", "PATH=/bin", "MY_TOKEN=xyzzy", "GONE=1"},
		func(value string) bool { return value == "hush" })
	require.NoError(t, s.Write(dir))
	require.NoError(t, (&Start{Version: "2"}).Write(dir), "the first stays")

	raw := must.Get(os.ReadFile(filepath.Join(dir, StartFile)))(t)
	for _, value := range []string{"xyzzy", "hush", "plugh", "/root"} {
		assert.NotContains(t, string(raw), value)
	}
	info := must.Get(os.Stat(filepath.Join(dir, StartFile)))(t)
	assert.Equal(t, os.FileMode(0o600), info.Mode())

	got := ReadStart(dir)
	require.Equal(t, s, got)
	assert.Equal(t, []string{"HOME", "MY_TOKEN"}, got.Inherited)
	assert.Equal(t, "/other", *got.Set["PATH"])
	assert.Contains(t, *got.Set["LONG"], "2000 bytes, SHA-256 ")
	require.Len(t, got.Files, 2)
	assert.Equal(t, filepath.Join(dir, "train.py"), got.Files[1].Path)

	outside := filepath.Join(t.TempDir(), "outside")
	require.NoError(t, os.Symlink(outside, filepath.Join(t.TempDir(), StartFile)))
	linked := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(linked, StartFile)))
	require.NoError(t, s.Write(linked))
	assert.NoFileExists(t, outside, "no link is followed")
	assert.Nil(t, ReadStart(t.TempDir()))
}

const (
	tracedError = `{"message": {"message": "KeyError: 'lr'", "extraInfo": {"py_callstack": "in <module> & co", "timestamp": "1700000000"}}}`
	plainError  = "{\"message\": \"boom\",   \"timestamp\": 10}\n"
)

// The child's file becomes the parent's (TE-69, TE-76) and replaces any existing file (TE-77). The
// upstream test of TE-69 compares nothing; this test does.
func TestHandOn_TE69_TE76_TE77_SEED88(t *testing.T) {
	for name, c := range map[string]struct {
		content  string
		exitCode int
		want     string // "": equal to the content
	}{
		"simple form":              {plainError, 3, ""},
		"exit code 0":              {tracedError, 0, ""},
		"no JSON at all":           {"core dumped", 3, ""},
		"a message that is a list": {`{"message": [1]}`, 3, ""},
		"nested, with its exit code": {tracedError, 3,
			`{"message":{"errorCode":3,"extraInfo":{"py_callstack":"in <module> & co","timestamp":"1700000000"},"message":"KeyError: 'lr'"}}`},
		"nested, ended by a signal": {`{"message": {"message": "x", "errorCode": 1}, "more": 1.0}`, -9,
			`{"message":{"errorCode":-9,"message":"x"},"more":1.0}`},
	} {
		t.Run(name, func(t *testing.T) {
			child, parent := fileWith(t, c.content), filepath.Join(t.TempDir(), "error.json")
			want := c.want
			if want == "" {
				want = c.content
			}
			for _, again := range []bool{false, true} {
				replaced := must.Get(HandOn(child, parent, c.exitCode))(t)
				assert.Equal(t, again, replaced)
				assert.Equal(t, want, must.Read(t, parent))
				require.NoError(t, os.WriteFile(parent, []byte("an old story, and a longer one than the new one is, by far and in every respect"), 0o600))
			}
			left := must.Get(os.ReadDir(filepath.Dir(parent)))(t)
			assert.Len(t, left, 1, "nothing is left beside it")
		})
	}
}

// TE-70
func TestHandOnWithoutAChildsFile(t *testing.T) {
	parent := fileWith(t, "old")
	replaced, err := HandOn(filepath.Join(t.TempDir(), "missing"), parent, 1)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.False(t, replaced)
	assert.Equal(t, "old", must.Read(t, parent))
}

func TestHandOnWhereItCannotBe(t *testing.T) {
	child, dir := fileWith(t, plainError), t.TempDir()
	_, err := HandOn(child, dir, 1)
	assert.EqualError(t, err, "error file "+dir+" is not a file")
	_, err = HandOn(child, filepath.Join(dir, "missing", "error.json"), 1)
	assert.ErrorContains(t, err, "missing/error.json")
	_, err = HandOn(child, child, 1)
	require.NoError(t, err)
	assert.Equal(t, plainError, must.Read(t, child), "the same file is left alone")
}

// Another host worker continues the file of a process.
func TestMetricsFile(t *testing.T) {
	dir := t.TempDir()
	at := func(i int) taskmetrics.Report {
		return taskmetrics.Report{At: time.Unix(1_800_000_000+int64(i), 0).UTC(), Step: float64(i), Metrics: map[string]float64{"loss": 1 / float64(i+1)}}
	}
	for _, some := range [][]taskmetrics.Report{{at(0), at(1)}, {at(0), at(1), at(2)}, {at(3)}} {
		require.NoError(t, WriteMetrics(dir, some))
	}
	b, _, err := ReadFile(filepath.Join(dir, MetricsFile), maxMetrics)
	require.NoError(t, err)
	assert.Equal(t, []taskmetrics.Report{at(0), at(1), at(2), at(3)}, taskmetrics.Parse(b))
}
