package spec

import (
	"slices"
	"strings"
)

// After is a run that must have ended before another begins.
type After struct {
	Run  string    `json:"run"`
	When AfterWhen `json:"when,omitempty"`
}

// AfterWhen says how the earlier run must have ended.
type AfterWhen string

// The values of [AfterWhen].
const (
	// AfterOK means that it has succeeded. It is the default.
	AfterOK AfterWhen = "ok"
	// AfterFailed means that it has ended otherwise, but was not skipped.
	AfterFailed AfterWhen = "failed"
	// AfterAny means any end.
	AfterAny AfterWhen = "any"
)

var afterWhens = []AfterWhen{AfterOK, AfterFailed, AfterAny}

// maxAfter bounds the earlier runs of a run.
const maxAfter = 100

// AfterOf returns the earlier run that a flag names, as RUN or RUN:WHEN.
func AfterOf(text string) After {
	if i := strings.LastIndexByte(text, ':'); i >= 0 && slices.Contains(afterWhens, AfterWhen(text[i+1:])) {
		return After{text[:i], AfterWhen(text[i+1:])}
	}
	return After{Run: text}
}

// RunEnd says in one word how a run has ended.
type RunEnd string

// The values of [RunEnd].
const (
	EndedWell    RunEnd = "succeeded"
	EndedBadly   RunEnd = "failed"  // failed, timed out, cancelled or terminated
	EndedSkipped RunEnd = "skipped" // it has never begun
	EndedUnknown RunEnd = "unknown" // its record is deleted
)

// Holds reports whether an end of the earlier run lets this run begin.
func (a After) Holds(end RunEnd) bool {
	switch a.When {
	case AfterAny:
		return true
	case AfterFailed:
		return end == EndedBadly
	}
	return end == EndedWell
}

// Wants returns the condition on the earlier run, as in "run prep to succeed".
func (a After) Wants() string {
	switch a.When {
	case AfterAny:
		return "run " + a.Run + " to end"
	case AfterFailed:
		return "run " + a.Run + " to fail"
	}
	return "run " + a.Run + " to succeed"
}

// Why returns the reason for skipping a run whose earlier run has ended that way.
func (a After) Why(end RunEnd) string {
	switch end {
	case EndedWell:
		return "run " + a.Run + " succeeded, and this run is for its failure"
	case EndedUnknown:
		return "the record of run " + a.Run + " is deleted, so its end is not known"
	case EndedSkipped:
		return "run " + a.Run + " was skipped"
	}
	return "run " + a.Run + " did not succeed"
}

// RunEndInput is the input of [ActivityRunEnd].
type RunEndInput struct {
	Run string `json:"run"`
	// Execution is the first execution of the run. If it is empty, the activity looks once, at
	// the latest run with that ID.
	Execution string `json:"execution,omitempty"`
}

// RunEndOutput is the output of [ActivityRunEnd].
type RunEndOutput struct {
	// Execution is the first execution of the run. It is empty if there is no such run.
	Execution string `json:"execution,omitempty"`
	// End is empty if the run has not ended.
	End RunEnd `json:"end,omitempty"`
}

// AfterActivity is the beginning of the ID of an activity that waits for the end of a run,
// followed by the ID of that run.
const AfterActivity = "after/"

func checkAfter(c *checker, s *RunSpec) {
	if n := len(s.After); n > maxAfter {
		c.add("after", "has too many items", "write at most 100")
	}
	for i, a := range s.After {
		if a.Run == "" {
			c.add(indexPath("after", i)+".run", "is empty", "name a run")
		}
		if slices.ContainsFunc(s.After[:i], func(b After) bool { return a.Run == b.Run }) {
			c.add(indexPath("after", i)+".run", a.Run+" is given twice", "keep one of them")
		}
	}
}
