package runrecord

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/workflows/taskmetrics"
)

// MetricHistory is what a task has reported over time.
type MetricHistory struct {
	Name    string               `json:"name"`
	Reports []taskmetrics.Report `json:"reports"`
}

// Metrics reads the metrics that tasks have reported over time. It omits what it cannot read, and the
// error explains why.
func Metrics(ctx context.Context, f *files.Files, tasks []starter.TaskStatus) (histories []MetricHistory, err error) {
	away := map[string]bool{} // hosts that do not answer
	for _, t := range tasks {
		reports := t.Progress != nil && len(t.Progress.Metrics) > 0 || t.Exit != nil && len(t.Exit.Metrics) > 0
		if !reports || t.LogDir == "" || away[t.Host] {
			continue
		}
		h := MetricHistory{Name: t.Name}
		if readErr := h.read(ctx, f, t); readErr != nil {
			away[t.Host], err = true, errors.Join(err, readErr)
		}
		histories = append(histories, h)
	}
	return histories, err
}

// read adds what a task's processes have reported.
func (h *MetricHistory) read(ctx context.Context, f *files.Files, t starter.TaskStatus) error {
	dirs, err := f.ProcessesOf(ctx, t)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, dir := range dirs {
		b, readErr := f.Read(ctx, t.Host, filepath.Join(dir, tasklog.MetricsFile))
		if errors.Is(readErr, fs.ErrNotExist) {
			continue // the process has not reported yet
		}
		h.Reports, err = append(h.Reports, taskmetrics.Parse(b)...), errors.Join(err, readErr)
	}
	return err
}
