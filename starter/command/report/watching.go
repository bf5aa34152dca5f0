package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

// Watch calls show with the status of a run every second and after its end. It returns the
// result as [starter.Run.WaitNotify] does.
func Watch(ctx context.Context, r *starter.Run, show func(*starter.Status) error, notify func(error)) (result *spec.RunResult, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		result, err = r.WaitNotify(ctx, notify)
	}()
	tick := time.NewTicker(StatusEvery)
	defer tick.Stop()
	for over := false; ; {
		// WaitNotify reports to notify that the server is away.
		if s, failed := r.Status(ctx); failed == nil && (!over || !s.Open) {
			if failed = show(s); failed != nil {
				stop()
				<-ended
				return nil, failed
			}
		}
		if over {
			return result, err
		}
		select {
		case <-ended:
			over = true
		case <-tick.C:
		}
	}
}

// News finds the changes of a run between calls.
type News struct {
	line   string
	before []starter.TaskStatus
	words  []string
	// unanswered reports whether the run did not answer the last time.
	unanswered bool
}

// Of returns the changes since the last call: the line of the run, if it differs, and the tasks
// that have new problems or were started again. It returns "" without changes. A run
// that does not answer is reported the second time only, since a busy host may be late.
func (n *News) Of(s *starter.Status) string {
	once := s.Unanswered && !n.unanswered && n.line != ""
	if n.unanswered = s.Unanswered; once {
		return ""
	}
	line := stateLine(s)
	words := s.Doing()
	var parts []string
	if line != n.line {
		parts = append(parts, line)
	}
	came := map[string][]string{}
	for i, t := range s.Tasks {
		if i >= len(n.before) || n.before[i].Name != t.Name {
			continue
		}
		switch word := words[i]; {
		case word != n.words[i] && word == starter.DoingFailed:
			exit, cause := ExitColumns(t.Exit)
			came[word] = append(came[word], fmt.Sprintf("%s (%s, %s)", t.Name, exit, cause))
		case word != n.words[i] && (word == starter.DoingRestart || word == starter.DoingMissing):
			came[word] = append(came[word], t.Name)
		case t.Restarts > n.before[i].Restarts:
			came[startedAgain] = append(came[startedAgain], t.Name)
		}
	}
	for _, word := range []string{starter.DoingFailed, starter.DoingRestart, starter.DoingMissing, startedAgain} {
		if names := came[word]; len(names) > 0 {
			parts = append(parts, word+": "+SomeOf(names))
		}
	}
	n.line, n.before, n.words = line, slices.Clone(s.Tasks), words
	return strings.Join(parts, "; ")
}

const startedAgain = "started again"

// stateLine returns the state of a run in a line, without values that change by themselves.
func stateLine(s *starter.Status) string {
	state := s.Word()
	switch {
	case !s.Open:
		return cmp.Or(s.Ending, string(s.Verdict))
	case s.Unanswered:
		state = "open, but " + s.Absence()
	}
	if s.Sweep != nil && len(s.Waiting) == 0 {
		return state + ": " + s.Sweep.Counts()
	}
	if counts := starter.TallyOf(s.Doing()).String(); counts != "" {
		state += ": " + counts
	}
	if line := outcome.Preempted(s.Preemptions, s.PendingSince, time.Local); line != "" {
		state += "; " + line
	}
	if s.Notice != nil {
		state += "; notice until " + s.Notice.Deadline.Local().Format(time.TimeOnly) + ": " + s.Notice.String()
	}
	if len(s.Waiting) > 0 {
		w := s.Waiting[0]
		w.Until, w.Fetching = time.Time{}, nil
		state += "; waiting for " + WaitingLine(w, time.Time{})
		if more := len(s.Waiting) - 1; more > 0 {
			state += ", and " + plural.Of(more, "place more", "places more")
		}
	}
	return state
}

// WithClock puts the time of day in front of a line.
func WithClock(line string) string { return time.Now().Format(time.TimeOnly) + " " + line }

// StatusEvery is the time between updates of the status line.
const StatusEvery = time.Second
