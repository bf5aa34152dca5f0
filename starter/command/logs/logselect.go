package logs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// Selection selects a part of a run's logs.
type Selection struct {
	// Names are tasks and types of tasks. If it is empty, all tasks are selected.
	Names []string
	// Selection has the values of flags.
	tasklog.Selection
}

// leavesOut reports whether some output of the run is not selected.
func (l *Selection) leavesOut() bool {
	return len(l.Names) > 0 || l.OnlyStdout || l.OnlyStderr || len(l.Attempts) > 0 || l.Last || !l.Since.IsZero()
}

// lastAttempt stands for the last process of each task.
const lastAttempt = "last"

// parseAttempts parses the values of --attempt.
func (l *Selection) parseAttempts(values []string) error {
	for _, v := range values {
		if v == lastAttempt {
			l.Last = true
			continue
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return cli.Usagef("--attempt %q: give the number of a process, from 0, or %s", v, lastAttempt)
		}
		l.Attempts = append(l.Attempts, n)
	}
	return nil
}

// ranks returns the ranks of the selected tasks, or nil for all tasks. A name that matches no
// task of the run is an error; the ranks of the other names are returned with it.
func (l *Selection) ranks(s *starter.Status) (map[int]bool, error) {
	return RanksOf(s, l.Names)
}

// RanksOf returns the ranks of tasks that are given by name, type or rank, or nil if names is
// empty. With an error for unknown names it returns the ranks of the others.
func RanksOf(s *starter.Status, names []string) (map[int]bool, error) {
	if len(names) == 0 {
		return nil, nil
	}
	e := &cli.UsageError{}
	wanted := map[int]bool{}
	for _, name := range names {
		found := false
		for _, t := range s.Tasks {
			if rank, ok := cli.RankOf(name); t.Name == name || t.Type == name || ok && t.Rank == rank {
				wanted[t.Rank], found = true, true
			}
		}
		if !found {
			e.Problems = append(e.Problems, fmt.Sprintf("run %s has no task and no type %s; `clusterrun status %s` shows those there are", s.RunID, name, s.RunID))
		}
	}
	if len(e.Problems) > 0 {
		return wanted, e
	}
	return wanted, nil
}

// Of returns the selection for a run. there has the processes with files, by the rank of their
// task.
func (l *Selection) Of(s *starter.Status, there map[int][]int) tasklog.Selection {
	of := l.Selection
	if wanted, _ := l.ranks(s); wanted != nil {
		of.Ranks = slices.Sorted(maps.Keys(wanted))
	}
	of.Latest = map[int]int{}
	for rank, attempts := range there {
		if len(attempts) > 0 {
			of.Latest[rank] = attempts[len(attempts)-1]
		}
	}
	return of
}

// checkAttempts returns an error if an ended run has no logs of a selected attempt.
func (l *Selection) checkAttempts(s *starter.Status, there map[int][]int) error {
	if s.Open || len(l.Attempts) == 0 {
		return nil
	}
	meant := l.Of(s, there)
	known := map[int]bool{}
	for rank, numbers := range there {
		for _, n := range numbers {
			if meant.HasTask(rank) {
				known[n] = true
			}
		}
	}
	for _, n := range l.Attempts {
		if !known[n] {
			return cli.Usagef("--attempt %d: there are logs of attempts %v", n, slices.Sorted(maps.Keys(known)))
		}
	}
	return nil
}
