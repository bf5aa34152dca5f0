package command

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/activities/tasklog"
	"github.com/clusterrun/clusterrun/starter"
)

// logSelection says which part of a run's logs is wanted.
type logSelection struct {
	// names are tasks and types of tasks; none: all.
	names            []string
	onlyOut, onlyErr bool
	// attempts are numbers of processes; none: all. last adds each task's last.
	attempts []int
	last     bool
	// since: what was written before is left out; zero: nothing is.
	since time.Time
}

// lastAttempt is what stands for the last process of each task.
const lastAttempt = "last"

// parseAttempts reads the values of --attempt.
func (l *logSelection) parseAttempts(values []string) error {
	for _, v := range values {
		if v == lastAttempt {
			l.last = true
			continue
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return usagef("--attempt %q: give the number of a process, from 0, or %s", v, lastAttempt)
		}
		l.attempts = append(l.attempts, n)
	}
	return nil
}

// parseSince reads the value of --since: how long ago, or a time.
func (l *logSelection) parseSince(value string, now time.Time) error {
	if value == "" {
		return nil
	}
	if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		l.since = now.Add(-d)
		return nil
	}
	// Without a zone it is the local one's.
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05"} {
		if at, err := time.ParseInLocation(layout, value, time.Local); err == nil {
			l.since = at
			return nil
		}
	}
	return usagef("--since %q: give how long ago, such as 10m, or a time such as %s", value, now.Add(-10*time.Minute).Format(time.RFC3339))
}

// ranks returns the ranks of the selected tasks; nil for all. A selection that matches no
// task of the run is reported, and the other tasks are still shown.
func (l *logSelection) ranks(s *starter.Status) (map[int]bool, error) {
	if len(l.names) == 0 {
		return nil, nil
	}
	e := &usageError{}
	wanted := map[int]bool{}
	for _, name := range l.names {
		found := false
		for _, t := range s.Tasks {
			if t.Name == name || t.Type == name {
				wanted[t.Rank], found = true, true
			}
		}
		if !found {
			e.problems = append(e.problems, fmt.Sprintf("run %s has no task and no type %s; `clusterrun status %s` shows those there are", s.RunID, name, s.RunID))
		}
	}
	if len(e.problems) > 0 {
		return wanted, e
	}
	return wanted, nil
}

// streams returns what reports whether a stream of a run is meant; there are the processes
// whose files are here, by the rank of their task.
func (l *logSelection) streams(s *starter.Status, there map[int][]int) func(tasklog.Stream) bool {
	wanted, _ := l.ranks(s)
	return func(st tasklog.Stream) bool {
		switch {
		case wanted != nil && !wanted[st.Rank], st.Stderr && l.onlyOut, !st.Stderr && l.onlyErr:
			return false
		}
		return l.means(st.Attempt, there[st.Rank])
	}
}

// means reports whether the process with that number is meant, where those are there.
func (l *logSelection) means(attempt int, there []int) bool {
	if len(l.attempts) == 0 && !l.last || slices.Contains(l.attempts, attempt) {
		return true
	}
	// One that starts while we follow is a later last.
	return l.last && (len(there) == 0 || attempt >= there[len(there)-1])
}

// checkAttempts refuses attempts of an ended run that are not there.
func (l *logSelection) checkAttempts(s *starter.Status, there map[int][]int) error {
	if s.Open || len(l.attempts) == 0 {
		return nil
	}
	wanted, _ := l.ranks(s)
	known := map[int]bool{}
	for rank, numbers := range there {
		for _, n := range numbers {
			if wanted == nil || wanted[rank] {
				known[n] = true
			}
		}
	}
	for _, n := range l.attempts {
		if !known[n] {
			return usagef("--attempt %d: there are logs of attempts %v here", n, slices.Sorted(maps.Keys(known)))
		}
	}
	return nil
}
