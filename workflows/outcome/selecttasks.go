package outcome

import (
	"path"
	"strconv"
	"strings"
)

// Select returns the tasks that match any of the words, in rank order, and the words that do not
// match any task. A word is a task's name or, if there is no such task, a type, a rank, a range of
// ranks such as 0-7, a name pattern such as worker-1?, a host, or [DoingFailed]. If there are no
// words, Select returns all tasks.
func (s *Status) Select(words []string) (tasks []TaskStatus, unknown []string) {
	if len(words) == 0 {
		return s.Tasks, nil
	}
	doing := s.Doing()
	chosen := make([]bool, len(s.Tasks))
	choose := func(means func(i int) bool) (found bool) {
		for i := range s.Tasks {
			if means(i) {
				chosen[i], found = true, true
			}
		}
		return found
	}
	for _, word := range words {
		first, last, isRanks := ranksOf(word)
		if !choose(func(i int) bool { return s.Tasks[i].Name == word }) && !choose(func(i int) bool {
			t := s.Tasks[i]
			matches, _ := path.Match(word, t.Name)
			return matches || t.Type == word || isRanks && first <= t.Rank && t.Rank <= last ||
				word != "" && t.Host == word || word == DoingFailed && doing[i] == DoingFailed
		}) {
			unknown = append(unknown, word)
		}
	}
	for i, t := range s.Tasks {
		if chosen[i] {
			tasks = append(tasks, t)
		}
	}
	return tasks, unknown
}

// ranksOf parses a rank or a range.
func ranksOf(word string) (first, last int, ok bool) {
	from, to, isRange := strings.Cut(word, "-")
	if !isRange {
		to = from
	}
	f, err1 := strconv.ParseUint(from, 10, 31)
	l, err2 := strconv.ParseUint(to, 10, 31)
	return int(f), int(l), err1 == nil && err2 == nil
}
