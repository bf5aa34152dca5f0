package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/internal/barriers"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/shellword"
)

// Run holds the known facts about a run.
type Run struct {
	Status *starter.Status
	// Barriers lists the barriers with waiting tasks.
	Barriers []barriers.Barrier
}

// Page returns the run's page without its frame, output and spec.
func (r Run) Page(now time.Time) *page.RunPage {
	s := r.Status
	p := &page.RunPage{Status: s, Stacks: s.Stacks}
	p.State, p.Tone = stateOf(s)
	if s.Result != nil {
		p.ExitCode, p.Stacks = s.Result.ExitCode, s.Result.Stacks
	}
	hosts := map[string]bool{}
	for _, t := range s.Tasks {
		if t.Host != "" {
			hosts[t.Host] = true
		}
		p.Restarts += t.Restarts
	}
	p.Hosts = len(hosts)
	if s.Generation > 0 {
		p.Restarts = s.Generation
	}
	p.Progress = progressOf(s.Tasks)
	if of := s.Sweep; of != nil && of.Trials > 0 {
		part := float64(of.Ended()+of.Skipped) / float64(of.Trials)
		p.Progress = &page.Progress{Least: part, Most: part, Left: time.Duration(of.RemainingSeconds) * time.Second, Message: of.Counts()}
	}
	p.Cause = causeOf(s)
	if p.Stacks != nil && (p.Cause != nil && p.Cause.Sentence == p.Stacks.Sentence || outcome.Has(s.Facts, outcome.FactHung)) {
		p.Stacks = new(p.Stacks.Below())
	}
	p.Notices = noticesOf(s.Facts)
	p.Tasks.All = tasksOf(s)
	p.Timeline = timelineOf(s, now)
	for _, b := range r.Barriers {
		p.Barriers = append(p.Barriers, barrierOf(b))
	}
	p.Commands = commandsOf(s)
	return p
}

// stateOf returns a run's state as a word.
func stateOf(s *starter.Status) (string, page.Tone) {
	switch {
	case !s.Open && s.Ending == "":
		return Ended(s.Verdict)
	case s.Unanswered:
		return "no answer", page.Warning
	}
	for _, f := range s.Facts {
		if f.Kind == outcome.FactState {
			return s.Word(), ToneOf(f.Severity)
		}
	}
	return s.Word(), page.Bad
}

// Ended returns an ended run's state as a word, and its tone.
func Ended(v spec.Verdict) (string, page.Tone) {
	word, tone := strings.ReplaceAll(cmp.Or(string(v), "ended"), "-", " "), page.Bad
	switch v {
	case spec.VerdictSucceeded:
		tone = page.Good
	case spec.VerdictCancelled, spec.VerdictSkipped, spec.VerdictPreempted:
		tone = page.Muted
	}
	return word, tone
}

// progressOf returns the minimum and maximum progress of the tasks that report their total.
func progressOf(tasks []starter.TaskStatus) *page.Progress {
	var p *page.Progress
	for _, t := range tasks {
		if t.Progress == nil || t.Progress.Total <= 0 {
			continue
		}
		part := min(1, max(0, t.Progress.Current/t.Progress.Total))
		var left time.Duration
		if t.Steps != nil && t.Steps.Seconds > 0 && !t.Steps.Barriers {
			left = time.Duration((t.Progress.Total - t.Progress.Current) * t.Steps.Seconds * float64(time.Second))
		}
		switch {
		case p == nil:
			p = &page.Progress{Least: part, Most: part, Left: left, Message: t.Progress.Message}
		case part < p.Least:
			p.Least, p.Left, p.Message = part, left, t.Progress.Message
		}
		p.Most = max(p.Most, part)
	}
	return p
}

// causeOf returns why a run ended, or nil.
func causeOf(s *starter.Status) *page.Cause {
	if s.Open || s.Verdict == spec.VerdictSucceeded {
		return nil
	}
	r := s.Result
	if r == nil {
		return &page.Cause{Sentence: cmp.Or(s.Message, "It ended without a result.")}
	}
	c := &page.Cause{Sentence: r.Message}
	if f := r.FirstFailure; f != nil {
		c.Task, c.Rank, c.Host, c.PID, c.At, c.Words = f.Task, f.Rank, f.Host, f.PID, f.Failed(), f.Message
		if f.Printed != nil && !strings.Contains(f.Message, f.Printed.Line) {
			c.FirstError = f.Printed.String()
		}
	}
	if f := r.FirstError; f != nil && f.Printed != nil {
		c.FirstError = f.Task + ": " + f.Printed.String()
	}
	var stacks []string // they have their own part of the page
	if r.Stacks != nil {
		stacks = strings.Split(r.Stacks.String(), "\n")
		if c.Task == "" && len(r.Stacks.Outliers) > 0 {
			c.Sentence, c.Details = r.Stacks.Sentence, []string{r.Message}
		}
	}
	for _, line := range outcome.Lines(r, outcome.Options{Run: s.RunID, Zone: time.Local}) {
		// The root cause with its words is already shown, and the output is on the page.
		isShown := strings.HasPrefix(line, "Root cause: ") || strings.HasPrefix(line, "Logs: ") ||
			strings.Contains(c.Words, strings.TrimSpace(line))
		if !slices.Contains(stacks, line) && (!isShown || c.Task == "") {
			c.Details = append(c.Details, line)
		}
	}
	return c
}

// noticesOf returns the facts that a page shows as notices. It shows the rest in its head and
// grid.
func noticesOf(facts []outcome.Fact) (notices []page.Notice) {
	for _, f := range facts {
		if f.IsNews() && f.Kind != outcome.FactState && f.Kind != outcome.FactDone {
			notices = append(notices, page.Notice{Tone: ToneOf(f.Severity), Text: f.Text, Items: f.Items})
		}
	}
	return notices
}

// ToneOf returns the tone for a severity.
func ToneOf(s outcome.Severity) page.Tone {
	switch s {
	case outcome.Bad:
		return page.Bad
	case outcome.Warning:
		return page.Warning
	case outcome.Waits:
		return page.Waits
	case outcome.Good:
		return page.Good
	case outcome.Note:
		return page.Muted
	}
	return page.Active
}

// commandsOf returns commands for a terminal.
func commandsOf(s *starter.Status) []page.Command {
	id := shellword.Of(s.RunID)
	commands := []page.Command{{What: "Status", Line: "clusterrun status " + id}, {What: "Output", Line: "clusterrun logs " + id}}
	if s.Sweep != nil {
		commands[1] = page.Command{What: "All trials as CSV", Line: "clusterrun status --csv " + id}
		if s.Open {
			return append(commands, page.Command{What: "Stop", Line: "clusterrun stop " + id})
		}
		return append(commands, page.Command{What: "Run it again", Line: "clusterrun rerun " + id})
	}
	if s.Open {
		return append(commands, page.Command{What: "Follow the output", Line: "clusterrun logs -f " + id},
			page.Command{What: "Stacks", Line: "clusterrun stacks " + id}, page.Command{What: "Stop", Line: "clusterrun stop " + id})
	}
	return append(commands, page.Command{What: "Run it again", Line: "clusterrun rerun " + id},
		page.Command{What: "Everything in a file", Line: "clusterrun export " + id})
}

func barrierOf(b barriers.Barrier) page.Barrier {
	out := page.Barrier{Barrier: b}
	out.Waiting, out.MoreWaiting = first(b.Waiting)
	out.Missing, out.MoreMissing = first(b.Missing)
	return out
}

// first returns a barrier's first tasks, and the number of omitted ones.
func first[T any](tasks []T) ([]T, int) {
	n := min(len(tasks), maxAtBarrier)
	return tasks[:n], len(tasks) - n
}

// maxAtBarrier is the maximum number of a barrier's tasks that are named.
const maxAtBarrier = 50

// timelineOf returns the part of a run's time line that its status contains.
func timelineOf(s *starter.Status, now time.Time) page.Timeline {
	l := page.Timeline{From: s.Started, To: s.Ended}
	if s.Open {
		l.To = now
	}
	for _, g := range s.GroupRestarts {
		if g.Failure != nil {
			l.Events = append(l.Events, page.Event{At: g.Failure.Failed(), Text: outcome.Restart(g), Tone: page.Warning})
		}
	}
	if r := s.Result; r != nil {
		if f := r.FirstFailure; f != nil {
			l.Events = append(l.Events, page.Event{At: f.Failed(), Text: f.Task + " " + outcome.Short(f.Exit), Tone: page.Culprit})
		}
		for _, t := range r.Tasks {
			for _, e := range t.Exits[:max(0, len(t.Exits)-1)] {
				if s.Generation == 0 {
					l.Events = append(l.Events, page.Event{At: e.Ended, Text: t.Name + " " + outcome.Short(e) + ", and was restarted", Tone: page.Warning})
				}
			}
		}
	}
	slices.SortStableFunc(l.Events, func(a, b page.Event) int { return a.At.Compare(b.At) })
	return l
}
