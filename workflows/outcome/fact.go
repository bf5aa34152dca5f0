package outcome

import (
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Fact is something true about a run.
type Fact struct {
	Kind     Kind     `json:"kind"`
	Severity Severity `json:"severity"`
	// Text is a sentence, which continues with Items.
	Text string `json:"text"`
	// Items are the sentence's tasks, hosts or lines.
	Items []string `json:"items,omitempty"`
	// key distinguishes facts of the same kind. If it is empty, Text or Items distinguish them. A
	// fact whose Text contains a duration needs a key, because the Text keeps changing.
	key string
}

// Kind is the kind of a [Fact].
type Kind string

// The values of [Kind].
const (
	FactDone       Kind = "done"       // the run has ended
	FactFailed     Kind = "failed"     // tasks failed, on their own or with their host
	FactHung       Kind = "hung"       // tasks are silent, and their stacks are known
	FactSilent     Kind = "silent"     // tasks show no signs of work
	FactMissing    Kind = "missing"    // a host does not answer
	FactUnanswered Kind = "unanswered" // no worker serves the run
	FactState      Kind = "state"      // the run's and tasks' state
	FactWaiting    Kind = "waiting"    // the run is waiting for hosts, or for another run to finish
	FactPreempted  Kind = "preempted"  // the run was preempted
	FactNotice     Kind = "notice"     // the tasks have notice of a stop
	FactStopping   Kind = "stopping"   // the tasks are stopping together
	FactRestarting Kind = "restarting" // tasks are waiting for a restart
	FactRestarted  Kind = "restarted"  // some or all tasks restarted
	FactSlow       Kind = "slow"       // a task or a host takes longer per step than others
	FactMemory     Kind = "memory"     // the kernel killed processes to free memory
	FactDropped    Kind = "dropped"    // output is missing from the files
	FactLeft       Kind = "left"       // a process left other processes behind
	FactProgress   Kind = "progress"   // the tasks' progress
	FactElastic    Kind = "elastic"    // the number of hosts may change
	FactStacks     Kind = "stacks"     // the tasks' stacks when they were last captured
	FactUse        Kind = "use"        // resource usage, and the time of the last output
	FactRule       Kind = "rule"       // a rule that explains the run's behavior
)

// Kinds lists all kinds.
var Kinds = []Kind{
	FactDone, FactFailed, FactHung, FactSilent, FactMissing, FactUnanswered, FactState, FactWaiting, FactPreempted, FactNotice, FactStopping,
	FactRestarting, FactRestarted, FactSlow, FactMemory, FactDropped, FactLeft, FactProgress, FactElastic, FactStacks, FactUse, FactRule,
}

// Severity is a fact's urgency.
type Severity string

// The values of [Severity], most urgent first.
const (
	Bad     Severity = "bad"
	Warning Severity = "warning"
	Waits   Severity = "waits"
	Active  Severity = "active"
	Good    Severity = "good"
	Note    Severity = "note"
)

var severities = []Severity{Bad, Warning, Waits, Active, Good, Note}

// String returns the sentence with the first items.
func (f Fact) String() string {
	const most = 8
	if len(f.Items) == 0 {
		return f.Text
	}
	return f.Text + ": " + shorten.List(f.Items, most)
}

// IsUrgent reports whether the fact needs attention.
func (f Fact) IsUrgent() bool {
	return f.Severity == Bad || f.Severity == Warning || f.Severity == Waits
}

// IsNews reports whether a change in the fact deserves a line.
func (f Fact) IsNews() bool { return f.Severity != Note && f.Kind != FactProgress }

// Marks returns strings that distinguish the fact from earlier facts of its kind. They are short
// and do not change as time passes.
func (f Fact) Marks() []string {
	switch {
	case f.key != "":
		return []string{string(f.Kind) + "\x00" + f.key}
	case len(f.Items) == 0:
		return []string{string(f.Kind) + "\x00" + f.Text}
	}
	marks := make([]string, len(f.Items))
	for i, item := range f.Items {
		marks[i] = string(f.Kind) + "\x00" + item
	}
	return marks
}

// News returns the facts with a mark that is not in known.
func News(facts []Fact, known func(mark string) bool) []Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f Fact) bool {
		return !slices.ContainsFunc(f.Marks(), func(mark string) bool { return !known(mark) })
	})
}

// Urgent returns the facts that need attention, except for the run's state.
func Urgent(facts []Fact) []Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f Fact) bool { return !f.IsUrgent() || f.Kind == FactState })
}

// Has reports whether facts contains one of that kind.
func Has(facts []Fact, kind Kind) bool {
	return slices.ContainsFunc(facts, func(f Fact) bool { return f.Kind == kind })
}

// Line joins facts on one line.
func Line(facts []Fact) string {
	texts := make([]string, len(facts))
	for i, f := range facts {
		texts[i] = f.String()
	}
	return strings.Join(texts, "; ")
}
