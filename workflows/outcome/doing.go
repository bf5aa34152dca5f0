package outcome

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/spec"
	words "github.com/clusterrun/clusterrun/workflows/text/list"
)

// What a task is doing, in one word. The word is the task's state or one of these.
const (
	DoingRestart = "restarting" // waiting for a restart
	DoingFailed  = "failed"     // failed, on its own or with its host
	DoingMissing = "missing"    // its host does not answer
	DoingUnknown = "unknown"    // its state is unknown because no worker reports it
)

// doings lists the words in the order of counts.
var doings = []string{
	string(spec.TaskPending), string(spec.TaskRunning), DoingRestart, string(spec.TaskStopping),
	string(spec.TaskEnded), DoingFailed, DoingMissing, DoingUnknown,
}

// Doing returns a word for each task's state.
func (s *Status) Doing() []string {
	silent := map[string]bool{}
	for _, h := range s.Silent {
		silent[h.Host] = true
	}
	return words.Of(s.Tasks, func(t TaskStatus) string { return t.doing(silent[t.Host]) })
}

func (t TaskStatus) doing(silent bool) string {
	switch {
	case t.State == "":
		return DoingUnknown
	case t.State == spec.TaskEnded:
		if e := t.Exit; e != nil && (e.Cause.ByItself() || e.Cause == spec.CauseHostLost) {
			return DoingFailed
		}
	case silent:
		return DoingMissing
	case !t.NextStart.IsZero():
		return DoingRestart
	}
	return string(t.State)
}

// Tally counts tasks by the words from [Status.Doing].
type Tally map[string]int

// TallyOf counts how often each word occurs.
func TallyOf(words []string) Tally {
	t := Tally{}
	for _, w := range words {
		t[w]++
	}
	return t
}

// Words returns the words with nonzero counts, in a fixed order.
func (t Tally) Words() []string {
	return slices.DeleteFunc(slices.Clone(doings), func(w string) bool { return t[w] == 0 })
}

// String returns the counts, such as "3 running, 1 ended".
func (t Tally) String() string {
	parts := words.Of(t.Words(), func(w string) string { return fmt.Sprintf("%d %s", t[w], w) })
	return strings.Join(parts, ", ")
}

// trouble lists the words for tasks with problems, worst first.
var trouble = []string{DoingFailed, DoingRestart, DoingMissing}

// A state is rare if at most one in fewOf tasks is in that state.
const fewOf = 20

// Odd returns the indices of tasks that deserve a look. Tasks in trouble come first, worst first,
// and then tasks in rare states.
func Odd(words []string) []int {
	all := TallyOf(words)
	var odd []int
	for _, w := range trouble {
		for i := range words {
			if words[i] == w {
				odd = append(odd, i)
			}
		}
	}
	for i, w := range words {
		if !slices.Contains(trouble, w) && all[w]*fewOf <= len(words) {
			odd = append(odd, i)
		}
	}
	return odd
}
