package command

import (
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// togetherFlags are those of stop that are about stopping together.
type togetherFlags struct {
	together, clear  bool
	reason           string
	message, kind    string
	given            func(flag string) bool
	onlyWithTogether []string
}

// check refuses what contradicts itself.
func (f *togetherFlags) check(wait bool) error {
	switch {
	case f.together && f.clear:
		return usagef("--together asks for a stop and --clear takes one back; give one of them")
	case f.clear && wait:
		return usagef("--clear has the run go on, so there is no end to wait for; leave --wait out")
	}
	if !f.together {
		for _, flag := range f.onlyWithTogether {
			if f.given(flag) {
				return usagef("--%s says why the tasks are to stop together; give --together as well", flag)
			}
		}
		return nil
	}
	if f.given("error") && f.message == "" {
		return usagef("--error is empty; say what went wrong, or leave it out")
	}
	if f.given("kind") && f.kind == "" {
		return usagef("--kind is empty; name a kind of error, such as ValueError, or leave it out")
	}
	return nil
}

func (f *togetherFlags) request() spec.TogetherRequest {
	q := spec.TogetherRequest{Reason: f.reason}
	if f.message != "" || f.kind != "" {
		q.Error = &spec.TogetherError{Kind: f.kind, Message: f.message}
	}
	return q
}

// stoppingLine returns who asked the tasks to stop, why and when, and how long they
// have.
func stoppingLine(s spec.Stopping, now time.Time) string {
	// The clock of the run may not be ours.
	text := fmt.Sprintf("%s (%s ago", s, roughly(max(0, now.Sub(s.Asked))))
	switch left := s.Deadline.Sub(now); {
	case s.Deadline.IsZero():
		text += "; the run was ending already"
	case left > 0:
		text += fmt.Sprintf("; %s left", roughly(left))
	default:
		text += "; their time is over"
	}
	return text + ")"
}

// stoppedTogether returns how the tasks of a run that did not fail stopped together. The
// message of a failure contains that already.
func stoppedTogether(r *spec.RunResult) []string {
	if r.Stopping == nil || r.Verdict != spec.VerdictSucceeded && r.Verdict != spec.VerdictCancelled {
		return nil
	}
	lines := []string{r.Stopping.String()}
	if len(r.Stragglers) > 0 {
		lines = append(lines, spec.StragglersText(r.Stragglers))
	}
	return lines
}
