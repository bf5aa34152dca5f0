package files

import (
	"slices"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/workflows/outcome"
)

// Selection selects part of a run's output.
type Selection struct {
	// Names are words for tasks; see [outcome.Status.Select]. If empty, all tasks are selected.
	Names []string
	tasklog.Selection
}

// LeavesOut reports whether the selection omits any output.
func (l *Selection) LeavesOut() bool {
	return len(l.Names) > 0 || l.OnlyStdout || l.OnlyStderr || len(l.Attempts) > 0 || l.Last || !l.Since.IsZero()
}

// Of returns the selection for a run. there holds the processes with files, by their task's
// rank.
func (l *Selection) Of(s *outcome.Status, there map[int][]int) tasklog.Selection {
	of := l.Selection
	if len(l.Names) > 0 {
		of.Ranks = []int{}
		tasks, _ := s.Select(l.Names)
		for _, t := range tasks {
			of.Ranks = append(of.Ranks, t.Rank)
		}
	}
	of.Latest = map[int]int{}
	for rank, attempts := range there {
		if len(attempts) > 0 {
			of.Latest[rank] = slices.Max(attempts)
		}
	}
	return of
}
