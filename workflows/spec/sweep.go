package spec

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	// SweepWorkflowType is the workflow type of a sweep: many runs of one spec with different
	// parameters.
	SweepWorkflowType = "Sweep"
	// TrialWorkflowType is the workflow type of a sweep's trial. A trial is a normal run, but lists
	// of runs show the sweep instead. See [TrialID].
	TrialWorkflowType = "Trial"
	// ActivityTrialsCheck finds finished trials among those that another execution of a sweep
	// started.
	ActivityTrialsCheck = "TrialsCheck"
	// SignalStopTrials stops a sweep's trials with numbers that match a pattern. SignalRetryTrials
	// returns its failed trials to the queue.
	SignalStopTrials  = "stop-trials"
	SignalRetryTrials = "retry-trials"
)

// Variables that are only set in trials.
const (
	// EnvSweep is the sweep's ID and EnvTrial the trial's number. Names with the prefix
	// EnvParamPrefix are the trial's parameters.
	EnvSweep       = "CLUSTERRUN_SWEEP"
	EnvTrial       = "CLUSTERRUN_TRIAL"
	EnvParamPrefix = "CLUSTERRUN_PARAM_"
)

// IsTrialVariable reports whether a sweep sets the variable in its trials' specs.
func IsTrialVariable(name string) bool {
	return name == EnvSweep || name == EnvTrial || strings.HasPrefix(name, EnvParamPrefix)
}

// TrialID returns the run ID of a sweep's trial.
func TrialID(sweep string, trial int) string { return sweep + "." + strconv.Itoa(trial) }

// SplitTrialID is the inverse of [TrialID]. ok is false for other IDs.
func SplitTrialID(id string) (sweep string, trial int, ok bool) {
	at := strings.LastIndexByte(id, '.')
	if at <= 0 {
		return "", 0, false
	}
	trial, err := strconv.Atoi(id[at+1:])
	if err != nil || trial < 0 || TrialID(id[:at], trial) != id {
		return "", 0, false
	}
	return id[:at], trial, true
}

// SweepStatus describes a sweep's trials.
type SweepStatus struct {
	// Trials is the number of all trials. The other fields are the numbers of trials in each state.
	// Skipped trials will never start.
	Trials    int `json:"trials"`
	Pending   int `json:"pending"`
	Running   int `json:"running"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	Skipped   int `json:"skipped"`
	// RunningTrials and FailedTrials identify the first 1,000 trials in each of these states.
	RunningTrials []int `json:"running_trials,omitempty"`
	FailedTrials  []int `json:"failed_trials,omitempty"`
	// AtMost is the maximum number of concurrent trials, and MaxFailures the number of tolerated
	// failures.
	AtMost      int  `json:"at_most"`
	MaxFailures *int `json:"max_failures,omitempty"`
	// RemainingSeconds estimates the time until the last trial finishes, or is 0 if unknown.
	RemainingSeconds int `json:"remaining_seconds,omitempty"`
	// States is the run-length encoding of all trials' states from trial 0, such as "17s1f42p",
	// with p: pending, r: running, s: succeeded, f: failed, c: cancelled, k: skipped.
	States string `json:"states"`
}

// Ended returns how many trials have ended.
func (s *SweepStatus) Ended() int { return s.Succeeded + s.Failed + s.Cancelled }

// Counts returns, for example, "12 of 60 trials ended, 4 running, 2 failed (3, 17)".
func (s *SweepStatus) Counts() string {
	text := fmt.Sprintf("%d of %d trials ended", s.Ended(), s.Trials)
	for _, c := range []struct {
		n     int
		state string
	}{{s.Running, "running"}, {s.Cancelled, "cancelled"}, {s.Skipped, "skipped"}} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.state)
		}
	}
	if s.Failed > 0 {
		text += fmt.Sprintf(", %d failed (%s)", s.Failed, FormatRanges(s.FailedTrials, s.Failed))
	}
	return text
}

// Summary returns an ended sweep's outcome, for example "2 of 60 trials failed (3, 17), 58
// succeeded".
func (s *SweepStatus) Summary() string {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{s.Failed, "failed (" + FormatRanges(s.FailedTrials, s.Failed) + ")"}, {s.Succeeded, "succeeded"},
		{s.Cancelled, "stopped"}, {s.Skipped, "not started"},
	} {
		switch {
		case c.n == 0:
		case len(parts) == 0:
			parts = append(parts, fmt.Sprintf("%d of %d trials %s", c.n, s.Trials, c.what))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	text := strings.Join(parts, ", ")
	if s.Failed > 0 && s.MaxFailures != nil && s.Failed > *s.MaxFailures {
		text += fmt.Sprintf("; more than max_failures (%d)", *s.MaxFailures)
	}
	return text
}

// FormatRanges formats ascending numbers, which are the first out of all, as numbers and ranges,
// such as "3, 17-19".
func FormatRanges(numbers []int, all int) string {
	const most = 12
	var parts []string
	shown := 0
	for i := 0; i < len(numbers) && len(parts) < most; {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if j < i+2 {
			j = i
		}
		part := strconv.Itoa(numbers[i])
		if j > i {
			part += "-" + strconv.Itoa(numbers[j])
		}
		parts, shown, i = append(parts, part), shown+j-i+1, j+1
	}
	text := strings.Join(parts, ", ")
	if all > shown {
		text += fmt.Sprintf(" and %d more", all-shown)
	}
	return text
}
