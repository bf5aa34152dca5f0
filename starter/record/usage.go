package record

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
		points, err := usageOf(ctx, f, t)
		histories[i].Points = append(histories[i].Points, points...)
		if err != nil {
			failed = append(failed, err)
			away[t.Host] = true
		}
	}
	return histories, errors.Join(failed...)
}

func usageOf(ctx context.Context, f *files.Files, t starter.TaskStatus) (points []series.Point, err error) {
	dirs, err := f.ProcessesOf(ctx, t)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, dir := range dirs {
		b, readErr := f.Read(ctx, t.Host, filepath.Join(dir, tasklog.UsageFile))
		if errors.Is(readErr, fs.ErrNotExist) {
			continue // written by an earlier version, or only just started
		}
		of, parseErr := tasklog.ParseUsage(b)
		points, err = append(points, of...), errors.Join(err, readErr, parseErr)
	}
	return points, err
}
