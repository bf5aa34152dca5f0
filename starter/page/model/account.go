package model

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/internal/barriers"
	"github.com/clusterrun/clusterrun/starter/page"
	"github.com/clusterrun/clusterrun/starter/runrecord"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

const (
	// maxEvents is the maximum number of events on the time line.
	maxEvents = 100
	// maxLanes is the maximum number of lanes for barriers, and for tasks.
	maxLanes = 4
)

// AddAccount adds the parts of a run's page that come from its history: the spec and, on the
// time line, phases, processes and barriers.
func AddAccount(p *page.RunPage, of *runrecord.Account, rounds []barriers.Round) {
	if of.Spec == nil {
		p.NoSpec = "The spec cannot be read: " + of.WhyNoSpec() + "."
	} else {
		p.AddSpec(of.Spec)
	}
	l := &p.Timeline
	l.Spans = slices.Concat(phaseSpans(of, l.To), processSpans(of.Status), roundSpans(rounds))
	l.Events = append([]page.Event{{At: of.Status.Started, Text: "started", Tone: page.Active}}, l.Events...)
	if s := of.Status; !s.Open && !s.Ended.IsZero() {
		l.Events = append(l.Events, page.Event{At: s.Ended, Text: p.State, Tone: p.Tone})
	}
	if more := len(l.Events) - maxEvents; more > 0 {
		l.Events, l.More = slices.Concat(l.Events[:maxEvents/2], l.Events[len(l.Events)-maxEvents/2:]), l.More+more
	}
}

// phaseSpans returns the run's phases in sequence. An open run's last phase extends until now.
func phaseSpans(of *runrecord.Account, now time.Time) (spans []page.Span) {
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
		tone := page.Waits
		if phase.Name == "running" {
			tone = page.Active
		}
		if phase.Seconds > 0 {
			spans = append(spans, page.Span{Lane: "phases", Text: phase.Name, From: at, To: end, Tone: tone})
		}
		at = end
	}
	return spans
}

// processSpans returns the most frequently restarted tasks' processes.
func processSpans(s *starter.Status) (spans []page.Span) {
	if s.Result == nil {
		return nil
	}
	tasks := slices.Clone(s.Result.Tasks)
	slices.SortStableFunc(tasks, func(a, b spec.TaskResult) int { return len(b.Exits) - len(a.Exits) })
	for _, t := range tasks[:min(len(tasks), maxLanes)] {
		for _, e := range t.Exits {
			tone := page.Good
			if !e.OK() {
				tone = page.Bad
			}
			if !e.Started.IsZero() && !e.Ended.IsZero() {
				spans = append(spans, page.Span{Lane: t.Name, Text: t.Name + ", process " + strconv.Itoa(e.Restart), From: e.Started, To: e.Ended, Tone: tone})
			}
		}
	}
	return spans
}

// roundSpans returns the barrier rounds that were open longest.
func roundSpans(rounds []barriers.Round) (spans []page.Span) {
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
				spans = append(spans, page.Span{Lane: "barrier " + name, Text: name + ", round " + strconv.Itoa(r.Round), From: r.Opened, To: r.Closed, Tone: page.Waits})
			}
		}
	}
	return spans
}
