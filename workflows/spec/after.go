package spec

import (
	"slices"
	"strings"
)

// After is an earlier run that must end before this run starts.
type After struct {
	Run  string    `json:"run"`
	When AfterWhen `json:"when,omitempty"`
}

// AfterWhen is the required outcome of the earlier run.
type AfterWhen string

// The values of [AfterWhen].
const (
	// AfterOK requires success. It is the default.
	AfterOK AfterWhen = "ok"
	// AfterFailed requires an outcome other than succeeded or skipped.
	AfterFailed AfterWhen = "failed"
	// AfterAny accepts any outcome.
	AfterAny AfterWhen = "any"
)

var afterWhens = []AfterWhen{AfterOK, AfterFailed, AfterAny}

// maxAfter limits the number of earlier runs.
const maxAfter = 100

// AfterOf parses the value of a flag, RUN or RUN:WHEN.
func AfterOf(text string) After {
	if i := strings.LastIndexByte(text, ':'); i >= 0 && slices.Contains(afterWhens, AfterWhen(text[i+1:])) {
		return After{text[:i], AfterWhen(text[i+1:])}
	}
	return After{Run: text}
}

// RunEnd is a run's outcome, in one word.
type RunEnd string

// The values of [RunEnd].
const (
	EndedWell    RunEnd = "succeeded"
	EndedBadly   RunEnd = "failed"  // failed, timed out, cancelled or terminated
	EndedSkipped RunEnd = "skipped" // the run never started
	EndedUnknown RunEnd = "unknown" // the run's record has been deleted
)

// Holds reports whether the condition is met by the earlier run's outcome, so that this run may
// start.
func (a After) Holds(end RunEnd) bool {
	switch a.When {
	case AfterAny:
		return true
	case AfterFailed:
		return end == EndedBadly
	}
	return end == EndedWell
}

// Wants describes the condition on the earlier run, as in "run prep to succeed".
func (a After) Wants() string {
	switch a.When {
	case AfterAny:
		return "run " + a.Run + " to end"
	case AfterFailed:
		return "run " + a.Run + " to fail"
	}
	return "run " + a.Run + " to succeed"
}

// Why returns the reason for skipping a run after that outcome of an earlier run.
func (a After) Why(end RunEnd) string {
	switch end {
	case EndedWell:
		return "run " + a.Run + " succeeded, and this run starts only if it fails"
	case EndedUnknown:
		return "the record of run " + a.Run + " was deleted, so it is not known how it ended"
	case EndedSkipped:
		return "run " + a.Run + " was skipped"
	}
	return "run " + a.Run + " did not succeed"
}

// RunEndInput is the input of [ActivityRunEnd].
type RunEndInput struct {
	Run string `json:"run"`
	// Execution is the run's first execution. If it is empty, the activity looks up the latest
	// run with that ID, once.
	Execution string `json:"execution,omitempty"`
}

// RunEndOutput is the output of [ActivityRunEnd].
type RunEndOutput struct {
	// Execution is the run's first execution, or empty if the run does not exist.
	Execution string `json:"execution,omitempty"`
	// End is empty while the run is open.
	End RunEnd `json:"end,omitempty"`
}

// AfterActivity is the ID prefix of an activity that waits for a run to finish. It is followed by
// the run's ID.
const AfterActivity = "after/"

func checkAfter(c *checker, s *RunSpec) {
	if n := len(s.After); n > maxAfter {
		c.add("after", "has too many items", "write at most 100")
	}
	for i, a := range s.After {
		if a.Run == "" {
			c.add(indexPath("after", i)+".run", "is empty", "name a run, or remove the item")
		}
		if slices.ContainsFunc(s.After[:i], func(b After) bool { return a.Run == b.Run }) {
			c.add(indexPath("after", i)+".run", a.Run+" is given twice", "remove one of them")
		}
	}
}
