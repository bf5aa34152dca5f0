package logs

import (
	"maps"
	"slices"
	"strconv"

	"github.com/clusterrun/clusterrun/activities/logs/tasklog"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/command/cli"
)

// Selection selects part of a run's logs.
type Selection struct {
	// Names are words for tasks; see [starter.Status.Select].
	Names []string
	// The flags set its fields.
	tasklog.Selection
}

// leavesOut reports whether it omits some of the run's output.
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

// ranks returns the selected tasks' ranks, or nil for all tasks. If some words match no task, it
// returns an error as well as the ranks for the matching words.
func (l *Selection) ranks(s *starter.Status) (map[int]bool, error) {
	if len(l.Names) == 0 {
		return nil, nil
	}
	wanted := map[int]bool{}
	tasks, unknown := s.Select(l.Names)
	for _, t := range tasks {
		wanted[t.Rank] = true
	}
	return wanted, cli.UnknownTasks(s, unknown)
}

// Of returns the selection for a run. there holds the processes with files, by their task's
// rank.
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

// checkAttempts returns an error if an ended run lacks logs for a selected attempt.
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
