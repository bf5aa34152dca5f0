package record

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	historypb "go.temporal.io/api/history/v1"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/activities/process/software"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/source"
)

// Software has the versions and packages of the tasks of a type on a host.
type Software struct {
	Type string `json:"type"`
	software.Record
	// Tasks are their names.
	Tasks []string `json:"tasks"`
}

// sourceOf returns the source code with which a run was started, or nil if that is unknown.
func sourceOf(histories []*historypb.History) *source.Source {
	for _, h := range histories {
		for _, e := range h.GetEvents()[:min(1, len(h.GetEvents()))] {
			if s := source.Of(e.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()); s != nil {
				return s
			}
		}
	}
	return nil
}

// AddFiles adds what only the files of the processes have, here or on their hosts: the software, and
// how they were started if that is not known yet. It stops when ctx is done. Its error has the
// reasons why the start of some processes cannot be read.
func (a *Account) AddFiles(ctx context.Context, f *Files) error {
	var failed []error
	type group struct{ host, kind string }
	var order []group
	groups := map[group][]starter.TaskStatus{}
	away := map[string]bool{}
	for i, t := range a.Status.Tasks {
		if t.LogDir == "" {
			continue
		}
		if a.Tasks[i].Start == nil && !away[t.Host] && ctx.Err() == nil {
			b, err := f.Read(ctx, t.Host, filepath.Join(t.LogDir, tasklog.StartFile))
			switch {
			case err == nil:
				a.Tasks[i].Start = tasklog.ParseStart(b)
			case !errors.Is(err, fs.ErrNotExist):
				away[t.Host], failed = true, append(failed, err)
			}
		}
		g := group{t.Host, t.Type}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], t)
	}
	for _, g := range order {
		tasks := groups[g]
		first := slices.MinFunc(tasks, func(a, b starter.TaskStatus) int { return a.Rank - b.Rank })
		b, err := f.Read(ctx, g.host, filepath.Join(first.LogDir, software.File))
		if err != nil {
			continue
		}
		if r := software.Parse(b); r != nil {
			s := Software{Type: g.kind, Record: *r}
			for _, t := range tasks {
				s.Tasks = append(s.Tasks, t.Name)
			}
			a.Software = append(a.Software, s)
		}
	}
	return errors.Join(failed...)
}

// softwareOf returns what each task used, by its name.
func (a *Account) softwareOf() map[string]*Software {
	of := map[string]*Software{}
	for i := range a.Software {
		for _, name := range a.Software[i].Tasks {
			of[name] = &a.Software[i]
		}
	}
	return of
}
