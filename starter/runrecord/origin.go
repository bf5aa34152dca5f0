package runrecord

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	historypb "go.temporal.io/api/history/v1"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/starter/sourcecode"
)

// sourceOf returns a run's source code, or nil if unknown.
func sourceOf(histories []*historypb.History) *sourcecode.Source {
	for _, h := range histories {
		for _, e := range h.GetEvents()[:min(1, len(h.GetEvents()))] {
			if s := sourcecode.Of(e.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()); s != nil {
				return s
			}
		}
	}
	return nil
}

// AddFiles adds how the processes were started, as recorded in their files on other hosts. It stops
// when ctx is done. The error explains why this cannot be read for some processes.
func (a *Account) AddFiles(ctx context.Context, f *files.Files) error {
	var failed []error
	away := map[string]bool{}
	for i, t := range a.Status.Tasks {
		if t.LogDir == "" || a.Tasks[i].Start != nil || away[t.Host] || ctx.Err() != nil {
			continue
		}
		b, err := f.Read(ctx, t.Host, filepath.Join(t.LogDir, tasklog.StartFile))
		switch {
		case err == nil:
			a.Tasks[i].Start = tasklog.ParseStart(b)
		case !errors.Is(err, fs.ErrNotExist):
			away[t.Host], failed = true, append(failed, err)
		}
	}
	return errors.Join(failed...)
}
