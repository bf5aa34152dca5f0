package tasklog

import (
	"path/filepath"
	"slices"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/workflows/taskmetrics"
)

// MetricsFile contains the metrics that a process reported over time, a line of JSON for each report
// that is kept; see [taskmetrics.Report].
const MetricsFile = "metrics"

// maxMetrics limits the [MetricsFile], and what is read of it.
const maxMetrics = 256 << 10

// WriteMetrics writes the reports of the process with the given directory ([ProcessDir]). It keeps
// those that an earlier host worker wrote.
func WriteMetrics(dir string, reports []taskmetrics.Report) error {
	path := filepath.Join(dir, MetricsFile)
	earlier, _, _ := ReadFile(path, maxMetrics) // otherwise there are none
	all := slices.DeleteFunc(taskmetrics.Parse(earlier), func(r taskmetrics.Report) bool { return !r.At.Before(reports[0].At) })
	var b []byte
	for _, r := range taskmetrics.Thin(append(all, reports...), taskmetrics.Kept) {
		b = taskmetrics.Append(b, r)
	}
	return atomicfile.Write(path, b, FileMode(dir))
}
