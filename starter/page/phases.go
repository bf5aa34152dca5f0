package page

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/internal/barriers"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// maxEvents is the maximum number of events on the time line.
	maxEvents = 100
	// maxLanes is the maximum number of lanes for barriers, and for tasks.
	maxLanes = 4
)

// AddAccount adds the parts that come from its history: the spec and, on the
// time line, phases, processes and barriers.
func (p *RunPage) AddAccount(of *runrecord.Account, rounds []barriers.Round) {
	if of.Spec == nil {
		p.NoSpec = "The spec cannot be read: " + of.WhyNoSpec() + "."
	} else {
		p.AddSpec(of.Spec)
	}
	l := &p.Timeline
	l.Spans = slices.Concat(phaseSpans(of, l.To), processSpans(of.Status), roundSpans(rounds))
	l.Events = append([]Event{{At: of.Status.Started, Text: "started", Tone: Active}}, l.Events...)
	if s := of.Status; !s.Open && !s.Ended.IsZero() {
		l.Events = append(l.Events, Event{At: s.Ended, Text: p.State, Tone: p.Tone})
	}
	if more := len(l.Events) - maxEvents; more > 0 {
		l.Events, l.More = slices.Concat(l.Events[:maxEvents/2], l.Events[len(l.Events)-maxEvents/2:]), l.More+more
	}
}

// phaseSpans returns the run's phases in sequence. An open run's last phase extends until now.
func phaseSpans(of *runrecord.Account, now time.Time) (spans []Span) {
	at := of.Status.Started
	phases := of.Phases
	if s, names := of.Status, runrecord.PhaseNames; s.Open && !s.Unanswered && len(phases) < len(names) {
		done := 0.0
		for _, phase := range phases {
			done += phase.Seconds
		}
		phases = append(slices.Clone(phases), runrecord.Phase{Name: names[len(phases)], Seconds: now.Sub(at).Seconds() - done})
	}
	for _, phase := range phases {
		end := at.Add(time.Duration(phase.Seconds * float64(time.Second)))
		tone := Waits
		if phase.Name == "running" {
			tone = Active
		}
		if phase.Seconds > 0 {
			spans = append(spans, Span{Lane: "phases", Text: phase.Name, From: at, To: end, Tone: tone})
		}
		at = end
	}
	return spans
}

// processSpans returns the most frequently restarted tasks' processes.
func processSpans(s *starter.Status) (spans []Span) {
	if s.Result == nil {
		return nil
	}
	tasks := slices.Clone(s.Result.Tasks)
	slices.SortStableFunc(tasks, func(a, b spec.TaskResult) int { return len(b.Exits) - len(a.Exits) })
	for _, t := range tasks[:min(len(tasks), maxLanes)] {
		for _, e := range t.Exits {
			tone := Good
			if !e.OK() {
				tone = Bad
			}
			if !e.Started.IsZero() && !e.Ended.IsZero() {
				spans = append(spans, Span{Lane: t.Name, Text: t.Name + ", process " + strconv.Itoa(e.Restart), From: e.Started, To: e.Ended, Tone: tone})
			}
		}
	}
	return spans
}

// roundSpans returns the barrier rounds that were open longest.
func roundSpans(rounds []barriers.Round) (spans []Span) {
	took := map[string]time.Duration{}
	for _, r := range rounds {
		took[r.Name] += r.Closed.Sub(r.Opened)
	}
	names := slices.SortedFunc(maps.Keys(took), func(a, b string) int {
		if took[a] != took[b] {
			return int(took[b] - took[a])
		}
		return strings.Compare(a, b)
	})
	const most = 500
	for _, name := range names[:min(len(names), maxLanes)] {
		n := 0
		for _, r := range rounds {
			if r.Name == name && n < most {
				n++
				spans = append(spans, Span{Lane: "barrier " + name, Text: name + ", round " + strconv.Itoa(r.Round), From: r.Opened, To: r.Closed, Tone: Waits})
			}
		}
	}
	return spans
}

// timelineOf returns the part of a run's time line that its status contains.
func timelineOf(s *starter.Status, now time.Time) Timeline {
	l := Timeline{From: s.Started, To: s.Ended}
	if s.Open {
		l.To = now
	}
	for _, g := range s.GroupRestarts {
		if g.Failure != nil {
			l.Events = append(l.Events, Event{At: g.Failure.Failed(), Text: outcome.Restart(g), Tone: Warning})
		}
	}
	if r := s.Result; r != nil {
		if f := r.FirstFailure; f != nil {
			l.Events = append(l.Events, Event{At: f.Failed(), Text: f.Task + " " + outcome.Short(f.Exit), Tone: Culprit})
		}
		for _, t := range r.Tasks {
			for _, e := range t.Exits[:max(0, len(t.Exits)-1)] {
				if s.Generation == 0 {
					l.Events = append(l.Events, Event{At: e.Ended, Text: t.Name + " " + outcome.Short(e) + ", and was restarted", Tone: Warning})
				}
			}
		}
	}
	slices.SortStableFunc(l.Events, func(a, b Event) int { return a.At.Compare(b.At) })
	return l
}
