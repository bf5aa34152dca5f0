package tasklog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/workflows/series"
)

// UsageFile contains a process's resource usage over time: records of package series, with the
// newest appended last. When it holds twice keptPoints, points are merged.
const UsageFile = "usage"

// MetricsFile contains the metrics that a process reported over time, with a line of JSON for each
// report that is kept; see [series.Report].
const MetricsFile = "metrics"

const (
	// keptPoints is the number of points kept for a process.
	keptPoints = 160
	// maxUsage limits the file's size, and how much of it is read.
	maxUsage = 2 * keptPoints * series.RecordSize
	// maxMetrics limits the size of the [MetricsFile], and how much of it is read.
	maxMetrics = 256 << 10
)

// Usage writes a process's [UsageFile] and its [MetricsFile]. It collects points for up to two
// minutes (for less at the start) before it writes them, because opening a file costs much more
// than writing to it.
type Usage struct {
	dir     string
	reports func() []series.Report
	begun   time.Time
	pending []series.Point
}

const (
	// maxPending is the maximum time to collect points, and pendingShare its inverse share of the
	// process's life so far.
	maxPending, pendingShare = 2 * time.Minute, 10
)

// NewUsage returns the Usage of the process with the given directory ([ProcessDir]). reports
// returns those of its reports that are not older than this Usage.
func NewUsage(processDir string, reports func() []series.Report) *Usage {
	return &Usage{dir: processDir, reports: reports}
}

// Add adds the next point. A point that cannot be written is lost.
func (u *Usage) Add(p series.Point) error {
	if u.begun.IsZero() {
		u.begun = p.From
	}
	u.pending = append(u.pending, p)
	to := p.To()
	if to.Sub(u.pending[0].From) < min(maxPending, to.Sub(u.begun)/pendingShare) {
		return nil
	}
	return u.Flush()
}

// Flush writes the collected points.
func (u *Usage) Flush() error {
	points := u.pending
	u.pending = nil
	if u.dir == "" || len(points) == 0 {
		return nil
	}
	return errors.Join(appendUsage(u.dir, points), writeMetrics(u.dir, u.reports()))
}

// writeMetrics writes a process's reports, after those that an earlier Usage has written.
func writeMetrics(dir string, reports []series.Report) error {
	if len(reports) == 0 {
		return nil
	}
	path := filepath.Join(dir, MetricsFile)
	earlier, _, _ := ReadFile(path, maxMetrics) // on errors, there are none
	all := slices.DeleteFunc(series.ParseReports(earlier), func(r series.Report) bool { return !r.At.Before(reports[0].At) })
	var b []byte
	for _, r := range series.Thin(append(all, reports...), series.KeptReports) {
		b = series.AppendReport(b, r)
	}
	return atomicfile.Write(path, b, FileMode(dir))
}

func appendUsage(dir string, points []series.Point) error {
	path := filepath.Join(dir, UsageFile)
	f, info, err := openRegular(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, FileMode(dir))
	if err != nil {
		return err
	}
	defer f.Close()
	var b []byte
	// Records after an incomplete one would be misread.
	if size := info.Size(); size%series.RecordSize != 0 || size+int64(len(points))*series.RecordSize > maxUsage {
		for _, p := range series.Coarsen(append(ReadUsage(dir), points...), keptPoints) {
			b = series.Append(b, p)
		}
		return atomicfile.Write(path, b, FileMode(dir))
	}
	for _, p := range points {
		b = series.Append(b, p)
	}
	_, err = f.Write(b)
	return err
}

// ReadUsage returns the usage over time of the process with the given directory, or nil if the file
// cannot be read on this host.
func ReadUsage(processDir string) []series.Point {
	b, _, err := ReadFile(filepath.Join(processDir, UsageFile), maxUsage)
	if err != nil {
		return nil
	}
	return series.Parse(b)
}

// ParseUsage returns the points of a [UsageFile]. It fails for a file that is too large.
func ParseUsage(b []byte) ([]series.Point, error) {
	if len(b) > maxUsage {
		return nil, errors.New("the usage file is too large")
	}
	return series.Parse(b), nil
}
