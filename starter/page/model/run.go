package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
	"github.com/clusterrun/clusterrun/workflows/text/shellword"
)

// Run has the known facts of a run.
type Run struct {
	Status *starter.Status
	// Barriers are the barriers at which tasks wait.
	Barriers []starter.Barrier
}

// Page returns the page of the run, without its frame, its output and the spec.
func (r Run) Page(now time.Time) *page.RunPage {
	s := r.Status
	p := &page.RunPage{
		ID: s.RunID, ExecutionID: s.ExecutionID, Name: s.Name, Owner: s.Owner, Command: s.Command, Dir: s.Dir, Queue: s.Queue,
		Open: s.Open, Started: s.Started, Ended: s.Ended, Stacks: s.Stacks,
	}
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
	p.Cause = causeOf(s)
	if p.Stacks != nil && p.Cause != nil && p.Cause.Sentence == p.Stacks.Sentence {
		below := *p.Stacks
		below.Sentence = ""
		p.Stacks = &below
	}
	p.Notices = noticesOf(s, now)
	p.Tasks.All = tasksOf(s)
	p.Timeline = timelineOf(s, now)
	for _, b := range r.Barriers {
		p.Barriers = append(p.Barriers, barrierOf(b))
	}
	p.Commands = commandsOf(s)
	return p
}

// stateOf returns the state of a run in a word.
func stateOf(s *starter.Status) (string, page.Tone) {
	switch {
	case !s.Open && s.Ending != "":
		return s.Ending, page.Bad
	case !s.Open:
		return Ended(s.Verdict)
	case s.Unanswered:
		return "no answer", page.Warning
	}
	switch s.State {
	case spec.RunPlacing:
		return s.Word(), page.Waits
	case spec.RunRestarting, spec.RunStopping:
		return string(s.State), page.Warning
	}
	return string(s.State), page.Active
}

// Ended returns the state of an ended run in a word, and its tone.
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

// progressOf returns the least and the greatest progress of tasks that report how much there is.
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
	var stacks []string // they have a part of the page
	if r.Stacks != nil {
		stacks = strings.Split(r.Stacks.String(), "\n")
		if c.Task == "" && len(r.Stacks.Outliers) > 0 {
			c.Sentence, c.Details = r.Stacks.Sentence, []string{r.Message}
		}
	}
	for _, line := range outcome.Lines(r, outcome.Options{Run: s.RunID, Zone: time.Local}) {
		// The root cause with its words is shown already, and the output is on the page.
		isShown := strings.HasPrefix(line, "Root cause: ") || strings.HasPrefix(line, "Logs: ") ||
			strings.Contains(c.Words, strings.TrimSpace(line))
		if !slices.Contains(stacks, line) && (!isShown || c.Task == "") {
			c.Details = append(c.Details, line)
		}
	}
	return c
}

// noticesOf returns the facts that need attention.
func noticesOf(s *starter.Status, now time.Time) (notices []page.Notice) {
	add := func(tone page.Tone, text string, items ...string) {
		notices = append(notices, page.Notice{Tone: tone, Text: text, Items: items})
	}
	if s.Unanswered && s.Open {
		add(page.Warning, "The run is open, but "+s.Absence()+".")
	}
	for _, w := range s.Waiting {
		if w.After != "" {
			add(page.Waits, "It waits for the end of run "+w.After+".")
			continue
		}
		text := "It waits for hosts of the queue " + w.Queue
		if w.Host != "" {
			text = "It waits for the host " + w.Host
		}
		if w.Position > 0 {
			text += fmt.Sprintf(", at position %d", w.Position)
		}
		if w.Refusal == "" {
			add(page.Waits, text+".")
		} else {
			add(page.Waits, text+".", w.Refusal)
		}
	}
	if line := outcome.Preempted(s.Preemptions, s.PendingSince, time.UTC); line != "" && s.Open {
		add(page.Waits, "The run was "+strings.TrimPrefix(line, "was ")+".")
	}
	if n := s.Notice; n != nil && s.Result == nil {
		add(page.Warning, "The tasks have notice.", outcome.StopNotice(*n, now))
	}
	for _, h := range s.Silent {
		add(page.Warning, h.Text(now))
	}
	if st := s.Stopping; st != nil && s.Result == nil {
		add(page.Warning, "The tasks are stopping together.", st.String())
	}
	if len(s.Slow) > 0 {
		items := list.Of(s.Slow[:min(8, len(s.Slow))], func(slow spec.Slow) string { return slow.String() })
		add(page.Warning, "Some tasks take longer for a step than the others.", items...)
	}
	var silent []string
	for _, t := range s.Tasks {
		if t.Usage != nil && t.Usage.SilentSeconds > 0 {
			silent = append(silent, fmt.Sprintf("%s for %s", t.Name, time.Duration(t.Usage.SilentSeconds)*time.Second))
		}
	}
	if len(silent) > 8 {
		silent = append(silent[:8], fmt.Sprintf("and %d more", len(silent)-8))
	}
	if len(silent) > 0 && s.Open {
		add(page.Warning, "Some tasks show no sign of work ("+spec.SilenceText(s.SilenceIgnoresCPU)+").", silent...)
	}
	if e := s.Elastic; e != nil {
		add(page.Active, "The number of hosts may change: "+e.String()+".")
	}
	return notices
}

// commandsOf returns commands for a terminal.
func commandsOf(s *starter.Status) []page.Command {
	id := shellword.Of(s.RunID)
	commands := []page.Command{{What: "Status", Line: "clusterrun status " + id}, {What: "Output", Line: "clusterrun logs " + id}}
	if s.Open {
		return append(commands, page.Command{What: "Follow the output", Line: "clusterrun logs -f " + id},
			page.Command{What: "Stacks", Line: "clusterrun stacks " + id}, page.Command{What: "Stop", Line: "clusterrun stop " + id})
	}
	return append(commands, page.Command{What: "Run it again", Line: "clusterrun rerun " + id},
		page.Command{What: "Everything in a file", Line: "clusterrun export " + id})
}

func barrierOf(b starter.Barrier) page.Barrier {
	out := page.Barrier{Name: b.Name, Round: b.Round, Opened: b.Opened, Deadline: b.Deadline, Unanswered: b.Unanswered}
	for i, w := range b.Waiting {
		if i == mostAtBarrier {
			out.MoreWaiting = len(b.Waiting) - i
			break
		}
		out.Waiting = append(out.Waiting, page.BarrierTask{Task: w.Task, Since: w.Since})
	}
	for i, m := range b.Missing {
		if i == mostAtBarrier {
			out.MoreMissing = len(b.Missing) - i
			break
		}
		out.Missing = append(out.Missing, page.BarrierTask{Task: m.Task, Host: m.Host, State: string(m.State)})
	}
	return out
}

// mostAtBarrier is the largest number of tasks of a barrier that are named.
const mostAtBarrier = 50

// timelineOf returns the part of the life of a run that its status has.
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
