package page

import (
	"cmp"
	"io"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/internal/barriers"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/stacktree"
	"github.com/clusterrun/clusterrun/workflows/text/units"
)

// RunPage is a run's page.
type RunPage struct {
	Frame
	*starter.Status
	// State is the state as a word, such as "running" or "timed out".
	State string
	Tone  Tone
	// Hosts counts the hosts. Restarts counts the restarted processes or, if the group restarts,
	// the group's restarts.
	Hosts, Restarts int
	ExitCode        int
	Progress        *Progress
	// Cause is why the run ended. It is nil if the run is open or has succeeded.
	Cause *Cause
	// Notices are the facts that the head and the grid do not show, and the answers to requests.
	Notices []outcome.Fact
	Actions []Action
	Tasks   Tasks
	// Sweep is set for a sweep, which has trials instead of tasks and output.
	Sweep    *Sweep
	Output   Output
	Timeline Timeline
	// Stacks compares the tasks' stacks as last captured. It is nil if none were captured.
	Stacks   *stacktree.Findings
	Barriers []Barrier
	// Metrics are the numbers that the tasks have reported over time.
	Metrics []Metric
	// Spec is the spec as YAML, without secrets. NoSpec is why it is missing.
	Spec, NoSpec string
}

// Progress is the tasks' progress.
type Progress struct {
	// Least and Most are the minimum and maximum progress of the tasks, from 0 to 1.
	Least, Most float64
	// Left is the remaining time, or 0 if unknown.
	Left    time.Duration
	Message string
}

// Barrier is a barrier with waiting tasks.
type Barrier struct {
	barriers.Barrier
	// MoreWaiting and MoreMissing count those omitted.
	MoreWaiting, MoreMissing int
}

// NewRun returns a run's page without its frame, output and spec. open are the barriers with waiting
// tasks.
func NewRun(s *starter.Status, open []barriers.Barrier, now time.Time) *RunPage {
	p := &RunPage{Status: s, Stacks: s.Stacks}
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
		p.Progress = &Progress{Least: part, Most: part, Left: time.Duration(of.RemainingSeconds) * time.Second, Message: of.Counts()}
	}
	p.Cause = causeOf(s)
	if p.Stacks != nil && (p.Cause != nil && p.Cause.Sentence == p.Stacks.Sentence || outcome.Has(s.Facts, outcome.FactHung)) {
		p.Stacks = new(p.Stacks.Below())
	}
	p.Notices = noticesOf(s.Facts)
	p.Tasks.All = NewTasks(s)
	p.Timeline = timelineOf(s, now)
	for _, b := range open {
		p.Barriers = append(p.Barriers, barrierOf(b))
	}
	return p
}

// stateOf returns a run's state as a word.
func stateOf(s *starter.Status) (string, Tone) {
	switch {
	case !s.Open && s.Ending == "":
		return Ended(s.Verdict)
	case s.Unanswered:
		return "no answer", Warning
	}
	for _, f := range s.Facts {
		if f.Kind == outcome.FactState {
			return s.Word(), ToneOf(f.Severity)
		}
	}
	return s.Word(), Bad
}

// Ended returns an ended run's state as a word, and its tone.
func Ended(v spec.Verdict) (string, Tone) {
	word, tone := strings.ReplaceAll(cmp.Or(string(v), "ended"), "-", " "), Bad
	switch v {
	case spec.VerdictSucceeded:
		tone = Good
	case spec.VerdictCancelled, spec.VerdictSkipped, spec.VerdictPreempted:
		tone = Muted
	}
	return word, tone
}

// progressOf returns the minimum and maximum progress of the tasks that report their total.
func progressOf(tasks []starter.TaskStatus) *Progress {
	var p *Progress
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
			p = &Progress{Least: part, Most: part, Left: left, Message: t.Progress.Message}
		case part < p.Least:
			p.Least, p.Left, p.Message = part, left, t.Progress.Message
		}
		p.Most = max(p.Most, part)
	}
	return p
}

// noticesOf returns the facts that a page shows as notices.
func noticesOf(facts []outcome.Fact) (notices []outcome.Fact) {
	for _, f := range facts {
		if f.IsNews() && f.Kind != outcome.FactState && f.Kind != outcome.FactDone {
			notices = append(notices, f)
		}
	}
	return notices
}

func barrierOf(b barriers.Barrier) Barrier {
	out := Barrier{Barrier: b}
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

// maxSpec is how many bytes of a spec are shown.
const maxSpec = 128 << 10

// AddSpec adds a run's spec.
func (p *RunPage) AddSpec(s *spec.RunSpec) {
	text, err := s.WithoutSecrets().YAML()
	if err != nil {
		return
	}
	p.Spec = string(text)
	if more := len(p.Spec) - maxSpec; more > 0 {
		p.Spec = p.Spec[:maxSpec] + "\n# " + units.Count(more, "byte more", "bytes more") + "\n"
	}
}

// RenderRun writes a run's page.
func RenderRun(w io.Writer, p *RunPage, m Mode) error {
	model := *p
	model.mode = m
	model.Title = cmp.Or(model.Title, p.RunID+" · "+p.State)
	return render(w, "run", &model)
}

// Took returns the time since the start, or until the end.
func (p *RunPage) Took() string {
	if p.Open {
		return units.Span(p.At.Sub(p.Started))
	}
	return units.Span(p.Ended.Sub(p.Started))
}

// IsFailure reports whether the run has failed.
func (p *RunPage) IsFailure() bool { return p.Tone == Bad || p.Tone == Culprit }

// CulpritTone and WarningTone are tones for templates.
func (p *RunPage) CulpritTone() Tone { return Culprit }

// WarningTone is a warning's tone.
func (p *RunPage) WarningTone() Tone { return Warning }
