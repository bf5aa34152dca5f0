package model

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/files"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Files holds what a run's page shows from the processes' files.
type Files struct {
	Series []page.Series
	Starts []page.Start
}

// ReadFiles reads the files that a run's page shows, from this machine or from the hosts that
// hold them. It omits what it cannot read. It always reads the charted ranks' usage.
func ReadFiles(ctx context.Context, r *starter.Run, s *starter.Status, tasks page.Tasks, charted []int) Files {
	files := r.Files(s)
	defer files.Close()
	histories, _ := runrecord.Usage(ctx, files, toChart(s, tasks, charted)) // the page has the rest
	return Files{append(Metrics(histories), Usage(histories, len(s.Tasks))...), readStarts(ctx, files, s)}
}

// toChart returns the tasks to chart. If the run has too many, it returns those with problems
// first, plus the charted tasks.
func toChart(s *starter.Status, tasks page.Tasks, charted []int) []starter.TaskStatus {
	if len(s.Tasks) <= maxCharted {
		return s.Tasks
	}
	chosen := map[int]bool{}
	for _, rank := range charted {
		chosen[rank] = true
	}
	for _, t := range tasks.Rows()[:maxCharted] {
		chosen[t.Rank] = true
	}
	return slices.DeleteFunc(slices.Clone(s.Tasks), func(t starter.TaskStatus) bool { return !chosen[t.Rank] })
}

// maxStarts limits how many tasks of each type are tried until one has a start file.
const maxStarts = 4

// readStarts returns the start of one task per type. The other tasks of the type differ only in
// their numbers.
func readStarts(ctx context.Context, files *files.Files, s *starter.Status) (starts []page.Start) {
	names, types := map[string][]string{}, []string{}
	for _, t := range s.Tasks {
		if names[t.Type] == nil {
			types = append(types, t.Type)
		}
		names[t.Type] = append(names[t.Type], t.Name)
	}
	away := map[string]bool{} // hosts that do not answer
	found, tried := map[string]*tasklog.Start{}, map[string]int{}
	for _, t := range s.Tasks {
		if found[t.Type] != nil || t.LogDir == "" || away[t.Host] || tried[t.Type] == maxStarts {
			continue
		}
		tried[t.Type]++
		text, err := files.Read(ctx, t.Host, filepath.Join(t.LogDir, tasklog.StartFile))
		if away[t.Host] = err != nil && !errors.Is(err, fs.ErrNotExist); err == nil {
			start := tasklog.ParseStart(text)
			own := func(name string) bool { return strings.HasPrefix(name, "CLUSTERRUN_") }
			maps.DeleteFunc(start.Set, func(name string, _ *string) bool { return own(name) })
			start.Inherited = slices.DeleteFunc(start.Inherited, own)
			found[t.Type] = start
		}
	}
	for _, typ := range types {
		if start := found[typ]; start != nil {
			starts = append(starts, page.Start{Tasks: shorten.List(names[typ], 4), Start: start})
		}
	}
	return starts
}
