package lifecycle

import (
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// SameError counts consecutive failures with the same error and without progress, after which
// another restart would not help.
type SameError struct {
	// Error identifies the last failure's error. It is empty if the error is unknown or due to a
	// peer's loss.
	Error string `json:"error,omitempty"`
	Times int    `json:"times,omitempty"`
	// Task is the only task that has shown the error, or empty if several have. If different tasks
	// fail one after another, each may have been hit by a different fault of its host.
	Task string `json:"task,omitempty"`
	// Step is the furthest step that has been reported so far.
	Step *float64 `json:"step,omitempty"`
}

// changing matches the variable parts of an error, such as addresses.
var changing = lazyregexp.New(`0x[0-9a-fA-F]+|[0-9]+`)

// sameText returns a string that identifies an error. It is the same each time a process fails with
// that error.
func sameText(p *spec.PrintedError) string {
	if !p.Own() {
		return ""
	}
	return p.Kind + " " + changing().ReplaceAllString(p.Line, "0") + " " + p.Place
}

// After returns the count after another failure, with an error that the given tasks have shown.
// step is the furthest step that was reported before the failure, or nil. A process that does not
// report steps counts as having made progress if it lived long enough.
func (s SameError) After(exit spec.Exit, tasks []string, step *float64) SameError {
	next := SameError{Error: sameText(exit.Printed), Step: s.Step}
	progress := step == nil && lived(exit) >= stableAfter
	if step != nil && (s.Step == nil || *step > *s.Step) {
		progress, next.Step = true, step
	}
	if next.Error == "" {
		return next
	}
	several := len(tasks) > 1
	next.Times = 1
	if next.Error == s.Error && !progress && (several || s.Task == "" || slices.Contains(tasks, s.Task)) {
		next.Times += s.Times
		several = several || s.Task == ""
	}
	if !several {
		next.Task = tasks[0]
	}
	return next
}

func lived(e spec.Exit) time.Duration { return e.Ended.Sub(e.Started) }

// hopeless reports whether the count rules out further restarts. If most is nil or 0, it never
// does.
func (s SameError) hopeless(most *int) bool { return most != nil && *most > 0 && s.Times >= *most }

// sameErrors counts the error of root, which stopped the generation, and reports whether another
// generation would be pointless. root may be nil.
func (m *Machine) sameErrors(root *spec.Failure) bool {
	if root == nil || !m.group.cause.ByItself() {
		return false // the program did not fail
	}
	tasks := []string{root.Task}
	var step *float64 // the furthest
	for _, t := range m.endedSince(0) {
		if t.Exit == nil || t.Exit.Restart < m.group.First {
			continue
		}
		if t.Name() != root.Task && sameText(t.Exit.Printed) == sameText(root.Printed) {
			tasks = append(tasks, t.Name())
		}
		if s := t.Exit.LastStep; s != nil && (step == nil || *s > *step) {
			step = s
		}
	}
	m.group.Same = m.group.Same.After(root.Exit, tasks, step)
	if !m.group.Same.hopeless(m.spec.GiveUpOnSameError) {
		return false
	}
	exit := root.Exit
	exit.SameErrors = m.group.Same.Times
	m.named[root.Task].Exit = &exit
	return true
}
