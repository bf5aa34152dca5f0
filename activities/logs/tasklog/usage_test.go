package tasklog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/clusterrun/clusterrun/workflows/series"
)

func usagePoint(i int) series.Point {
	return series.Point{From: time.Unix(1_800_000_000+10*int64(i), 0).UTC(), Seconds: 10, CPUs: 1, MaxCPUs: 1, RSSBytes: float64(i)}
}

// A day of samples stays within a fixed size, and covers the day.
func TestUsageHasAFixedSize(t *testing.T) {
	dir, day := t.TempDir(), 24*360
	u := NewUsage(dir)
	for i := range day {
		require.NoError(t, u.Add(usagePoint(i)))
		if i < 10 {
			assert.Len(t, ReadUsage(dir), i+1, "a young process is shown at once")
		}
	}
	require.NoError(t, u.Flush())
	info, err := os.Stat(filepath.Join(dir, UsageFile))
	require.NoError(t, err)
	assert.LessOrEqual(t, info.Size(), int64(16<<10))
	points := ReadUsage(dir)
	assert.Equal(t, usagePoint(0).From, points[0].From)
	assert.Equal(t, usagePoint(day-1), points[len(points)-1])
	assert.InDelta(t, 86400, series.Total(points).Seconds, 1e-6)
}

func TestUsageOfADamagedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, UsageFile)
	add := func(i int) error { return NewUsage(dir).Add(usagePoint(i)) }
	assert.Empty(t, ReadUsage(dir), "there is none")
	require.NoError(t, add(0))
	require.NoError(t, os.Truncate(path, series.RecordSize+5)) // the writer was killed
	require.NoError(t, add(1))
	assert.Equal(t, []series.Point{usagePoint(0), usagePoint(1)}, ReadUsage(dir))

	require.NoError(t, os.Truncate(path, 1<<20)) // a program wrote there
	assert.Empty(t, ReadUsage(dir))
	require.NoError(t, add(2))
	assert.Equal(t, []series.Point{usagePoint(2)}, ReadUsage(dir))

	require.NoError(t, os.Remove(path))
	require.NoError(t, unix.Mkfifo(path, 0o600))
	require.Error(t, add(3))
	assert.Empty(t, ReadUsage(dir))
	_, err := ParseUsage(make([]byte, 1<<20))
	require.Error(t, err)
}

// BenchmarkUsage prints the cost of 1,000 tasks that are sampled every ten seconds for a day.
func BenchmarkUsage(b *testing.B) {
	all := make([]*Usage, 100)
	for i := range all {
		all[i] = NewUsage(b.TempDir())
	}
	at, before := 0, cpuTime(b)
	for b.Loop() {
		require.NoError(b, all[at%len(all)].Add(usagePoint(at/len(all))))
		at++
	}
	const tasks, samples, percent = 1000, 100, 100 // samples of all tasks in a second
	b.ReportMetric((cpuTime(b)-before).Seconds()/float64(at)*samples*percent, "%core/1000tasks")
	largest := int64(0)
	for _, u := range all {
		info, err := os.Stat(filepath.Join(u.dir, UsageFile))
		require.NoError(b, err)
		largest = max(largest, info.Size())
	}
	const block = 4096
	b.ReportMetric(float64(tasks*(largest+block-1)/block*block)/1e6, "MB/1000tasks")
}

// cpuTime returns the processor time of this process, which other programs do not change.
func cpuTime(b *testing.B) time.Duration {
	var used unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
