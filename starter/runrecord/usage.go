package runrecord

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/workflows/series"
)

// UsageHistory is a task's usage over time.
type UsageHistory struct {
	Name string `json:"name"`
	Rank int    `json:"rank"`
	Host string `json:"host,omitempty"`
	// Points cover all of the task's processes, sorted by time.
	Points []series.Point `json:"points"`
	// Reports are the processes' metrics.
	Reports []series.Report `json:"metrics,omitempty"`
}

// Usage reads tasks' usage over time, in their order. It omits points that cannot be read, and
// the error explains why. A task without points gets an empty list.
func Usage(ctx context.Context, f *files.Files, tasks []starter.TaskStatus) ([]UsageHistory, error) {
	var failed []error
	histories := make([]UsageHistory, len(tasks))
	away := map[string]bool{} // hosts that do not answer
	for i, t := range tasks {
		histories[i] = UsageHistory{Name: t.Name, Rank: t.Rank, Host: t.Host, Points: []series.Point{}}
		if t.LogDir == "" || away[t.Host] {
			continue
		}
		if err := histories[i].read(ctx, f, t); err != nil {
			failed = append(failed, err)
			away[t.Host] = true
		}
	}
	return histories, errors.Join(failed...)
}

// read adds what a task's processes have recorded.
func (h *UsageHistory) read(ctx context.Context, f *files.Files, t starter.TaskStatus) error {
	dirs, err := f.ProcessesOf(ctx, t)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	read := func(dir, file string, add func(b []byte) error) {
		b, readErr := f.Read(ctx, t.Host, filepath.Join(dir, file))
		if !errors.Is(readErr, fs.ErrNotExist) { // otherwise the process only just started
			err = errors.Join(err, readErr, add(b))
		}
	}
	reports := t.Progress != nil && len(t.Progress.Metrics) > 0 || t.Exit != nil && len(t.Exit.Metrics) > 0
	for _, dir := range dirs {
		read(dir, tasklog.UsageFile, func(b []byte) error {
			points, err := tasklog.ParseUsage(b)
			h.Points = append(h.Points, points...)
			return err
		})
		if reports {
			read(dir, tasklog.MetricsFile, func(b []byte) error {
				h.Reports = append(h.Reports, series.ParseReports(b)...)
				return nil
			})
		}
	}
	return err
}
