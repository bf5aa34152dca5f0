package tasklog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/must"
)

// timed returns a run's directory, and the directory of process 0 of rank 0 in it.
func timed(t *testing.T) (run, dir string) {
	t.Helper()
	run = t.TempDir()
	dir = ProcessDir(run, 0, 0)
	require.NoError(t, MakeDir(dir))
	return run, dir
}

// noted returns the file's lines without their times.
func noted(t *testing.T, dir string) (sizes []string) {
	t.Helper()
	for _, r := range readTimes(dir) {
		sizes = append(sizes, fmt.Sprint(r.sizes))
	}
	return sizes
}

func TestTimes(t *testing.T) {
	_, dir := timed(t)
	times := NewTimes(dir)
	times.Note()
	assert.NoFileExists(t, filepath.Join(dir, TimesFile), "nothing to note")
	assert.Zero(t, times.Latest())
	appendTo(t, dir, StdoutFile, "one\n")
	times.Note()
	times.Note()
	appendTo(t, dir, StderrFile, "two")
	times.Note()
	assert.Equal(t, []string{"[4 0]", "[4 3]"}, noted(t, dir), "a line for each change")
	earlier, latest := time.Unix(1000, 0), time.Unix(1001, 5)
	require.NoError(t, os.Chtimes(filepath.Join(dir, StdoutFile), latest, latest))
	require.NoError(t, os.Chtimes(filepath.Join(dir, StderrFile), earlier, earlier))
	times.Note()
	assert.True(t, times.Latest().Equal(latest), times.Latest())

	again := NewTimes(dir) // another host worker continues the file
	again.Note()
	assert.Len(t, noted(t, dir), 2)
	appendTo(t, dir, StdoutFile, "three")
	again.Note()
	assert.Equal(t, []string{"[4 0]", "[4 3]", "[9 3]"}, noted(t, dir))

	NewTimes("").Note()
	NewTimes(filepath.Join(dir, "missing")).Note()
	assert.NoDirExists(t, filepath.Join(dir, "missing"), "what was pruned stays away")
}

// The exit is recorded with its own time, even if it is noted late.
func TestTimesOfTheEnd(t *testing.T) {
	_, dir := timed(t)
	appendTo(t, dir, StdoutFile, "out")
	ended := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(dir, StdoutFile), ended, ended.Add(-time.Second)))
	NewTimes(dir).NoteEnd(ended)
	assert.Equal(t, []record{{ended.UnixNano(), [2]int64{3, 0}}}, readTimes(dir))

	_, dir = timed(t)
	appendTo(t, dir, StderrFile, "from a grandchild")
	later := ended.Add(time.Minute)
	require.NoError(t, os.Chtimes(filepath.Join(dir, StderrFile), later, later))
	NewTimes(dir).NoteEnd(ended)
	assert.Equal(t, []record{{later.Add(clockTick).UnixNano(), [2]int64{0, 17}}}, readTimes(dir))
}

// The writer may have been killed within the last line.
func TestTimesWithATornLine(t *testing.T) {
	_, dir := timed(t)
	appendTo(t, dir, StdoutFile, "12345")
	appendTo(t, dir, TimesFile, "100 3 0\n200 4")
	assert.Equal(t, []record{{100, [2]int64{3, 0}}}, readTimes(dir))
	NewTimes(dir).Note()
	assert.Equal(t, []string{"[3 0]", "[5 0]"}, noted(t, dir))
	appendTo(t, dir, TimesFile, "a b c\n-1 2 3\n1 2\n")
	assert.Len(t, noted(t, dir), 2, "what is no record is passed over")
}

// Over a long life the notes become coarser, but the last one is kept.
func TestTimesAreBounded(t *testing.T) {
	run, dir := timed(t)
	times := NewTimes(dir)
	times.max = 1000
	for range 500 {
		appendTo(t, dir, StdoutFile, ".\n")
		times.Note()
		info := must.Get(os.Stat(filepath.Join(dir, TimesFile)))(t)
		require.LessOrEqual(t, info.Size(), int64(1100))
		records := readTimes(dir)
		require.Equal(t, times.last, records[len(records)-1])
	}
	files := must.Get(os.ReadDir(dir))(t)
	assert.Len(t, files, 2, "nothing is left beside it")
	records := readTimes(dir)
	assert.Greater(t, len(records), 5)
	for _, r := range records {
		assert.LessOrEqual(t, Since(run, time.Unix(0, r.at))(Stream{}), r.sizes[0])
	}
}

func TestSince(t *testing.T) {
	run, dir := timed(t)
	appendTo(t, dir, StdoutFile, "first\nsecond\nthird and last\n")
	appendTo(t, dir, StderrFile, "error\n")
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	require.NoError(t, os.Chtimes(filepath.Join(dir, StdoutFile), at(500), at(500)))
	require.NoError(t, os.Chtimes(filepath.Join(dir, StderrFile), at(150), at(150)))
	out, errs := Stream{}, Stream{Stderr: true}

	// Without records, all of the output is shown or none.
	assert.Equal(t, int64(0), Since(run, at(499))(out))
	assert.Equal(t, int64(0), Since(run, at(500))(out), "files are stamped with the time of a tick before")
	assert.Equal(t, int64(28), Since(run, at(501))(out))
	assert.Equal(t, int64(6), Since(run, at(499))(errs))

	lines := []string{"100000000000 6 0", "200000000000 15 6", "300000000000 28 6"}
	appendTo(t, dir, TimesFile, strings.Join(lines, "\n")+"\n")
	for since, want := range map[int64]int64{99: 0, 100: 6, 199: 6, 200: 13, 299: 13, 300: 28, 499: 28, 500: 28} {
		assert.Equal(t, want, Since(run, at(since))(out), since)
	}
	assert.Equal(t, int64(0), Since(run, at(149))(errs), "nobody looked before")
	assert.Equal(t, int64(6), Since(run, at(151))(errs), "not written since")

	assert.Equal(t, int64(0), Since(run, at(0))(Stream{Rank: 7}), "not there")
	require.NoError(t, os.WriteFile(filepath.Join(dir, StdoutFile), []byte("new\n"), 0o600))
	assert.Equal(t, int64(0), Since(run, at(300))(out), "another file than was looked at")
}

// A clock that was set back makes Since show more, not less.
func TestSinceWithAClockSetBack(t *testing.T) {
	run, dir := timed(t)
	appendTo(t, dir, StdoutFile, "1\n2\n3\n4\n")
	appendTo(t, dir, TimesFile, "100 2 0\n300 4 0\n150 6 0\n")
	assert.Equal(t, int64(2), Since(run, time.Unix(0, 200))(Stream{}))
}

// The follower starts at the offset that From returns, and continues from it.
func TestFollowFrom(t *testing.T) {
	run, dir := timed(t)
	appendTo(t, dir, StdoutFile, "old\nnew\n")
	c := &collector{}
	f := Follow(run, c.add, FollowOptions{From: func(Stream) int64 { return 4 }})
	eventually(t, "the new line", func() bool { return c.text(Stream{}) == "new\n" })
	appendTo(t, dir, StdoutFile, "newer\n")
	require.NoError(t, f.Stop(t.Context()))
	assert.Equal(t, "new\nnewer\n", c.text(Stream{}))
}

// The times of a place in the output come from the records around it, and at its end from the file.
func TestStreamEnds(t *testing.T) {
	_, dir := timed(t)
	assert.Empty(t, StreamEnds(dir, 100))
	times := NewTimes(dir)
	times.Note()
	appendTo(t, dir, StderrFile, "first\n")
	times.Note()
	appendTo(t, dir, StderrFile, "second\n")
	times.Note()
	appendTo(t, dir, StderrFile, "third\n")
	records := readTimes(dir)
	require.Len(t, records, 2)

	ends := StreamEnds(dir, 10)
	require.Len(t, ends, 1)
	assert.Equal(t, "third\n", string(ends[0].Text), "from the start of a line")
	assert.EqualValues(t, 13, ends[0].Offset)

	ends = StreamEnds(dir, 100)
	require.Len(t, ends, 1)
	assert.Equal(t, "first\nsecond\nthird\n", string(ends[0].Text))
	after, by := ends[0].Times(6)
	assert.True(t, after.IsZero())
	assert.False(t, by.After(time.Unix(0, records[0].at)))
	after, by = ends[0].Times(13)
	assert.Equal(t, records[0].at, after.UnixNano())
	assert.False(t, by.After(time.Unix(0, records[1].at)))
	_, by = ends[0].Times(19)
	assert.Equal(t, ends[0].Written, by)
}
