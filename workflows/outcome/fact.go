package outcome

import (
	"slices"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Fact is something that is so about a run.
type Fact struct {
	Kind     Kind     `json:"kind"`
	Severity Severity `json:"severity"`
	// Text is a sentence. It goes on with Items, if there are any.
	Text string `json:"text"`
	// Items are the tasks, hosts or lines that the sentence is about.
	Items []string `json:"items,omitempty"`
	// key tells the fact from others of its kind. It is empty if Text or Items do: a text with a
	// time that passes changes by itself.
	key string
}

// Kind is the kind of a [Fact].
type Kind string

// The values of [Kind].
const (
	FactDone       Kind = "done"       // the run has ended
	FactFailed     Kind = "failed"     // tasks have failed, by themselves or with their host
	FactHung       Kind = "hung"       // tasks are silent, and their stacks are known
	FactSilent     Kind = "silent"     // tasks show no sign of work
	FactMissing    Kind = "missing"    // a host does not answer
	FactUnanswered Kind = "unanswered" // no worker answers for the run
	FactState      Kind = "state"      // the state of the run and of its tasks
	FactWaiting    Kind = "waiting"    // the run waits for hosts, or for the end of another run
	FactPreempted  Kind = "preempted"  // the run was preempted
	FactNotice     Kind = "notice"     // the tasks have notice that they will be stopped
	FactStopping   Kind = "stopping"   // the tasks are stopping together
	FactRestarting Kind = "restarting" // tasks wait to be started again
	FactRestarted  Kind = "restarted"  // tasks, or all of them, were started again
	FactSlow       Kind = "slow"       // a task or a host takes longer for a step than others
	FactMemory     Kind = "memory"     // the kernel has killed processes to free memory
	FactDropped    Kind = "dropped"    // output is in no file
	FactLeft       Kind = "left"       // a process has left others
	FactProgress   Kind = "progress"   // how far the tasks are
	FactElastic    Kind = "elastic"    // the number of hosts may change
	FactStacks     Kind = "stacks"     // where the tasks were at the last look
	FactUse        Kind = "use"        // what the processes use, and when one wrote last
	FactRule       Kind = "rule"       // a rule that explains what the run does
)

// Kinds are all kinds.
var Kinds = []Kind{
	FactDone, FactFailed, FactHung, FactSilent, FactMissing, FactUnanswered, FactState, FactWaiting, FactPreempted, FactNotice, FactStopping,
	FactRestarting, FactRestarted, FactSlow, FactMemory, FactDropped, FactLeft, FactProgress, FactElastic, FactStacks, FactUse, FactRule,
}

// Severity says how urgent a fact is.
type Severity string

// The values of [Severity], the most urgent first.
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

// IsNews reports whether a change of the fact is worth a line.
func (f Fact) IsNews() bool { return f.Severity != Note && f.Kind != FactProgress }

// Marks returns what makes the fact differ from earlier facts of its kind. Each mark is short
// and does not change while time passes.
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

// News returns the facts that have a mark that is not known.
func News(facts []Fact, known func(mark string) bool) []Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f Fact) bool {
		return !slices.ContainsFunc(f.Marks(), func(mark string) bool { return !known(mark) })
	})
}

// Urgent returns the facts that need attention, without the state of the run.
func Urgent(facts []Fact) []Fact {
	return slices.DeleteFunc(slices.Clone(facts), func(f Fact) bool { return !f.IsUrgent() || f.Kind == FactState })
}

// Has reports whether there is a fact of a kind.
func Has(facts []Fact, kind Kind) bool {
	return slices.ContainsFunc(facts, func(f Fact) bool { return f.Kind == kind })
}

// Line writes facts in a line.
func Line(facts []Fact) string {
	texts := make([]string, len(facts))
	for i, f := range facts {
		texts[i] = f.String()
	}
	return strings.Join(texts, "; ")
}
