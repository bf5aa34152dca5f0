package spec

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	// SweepWorkflowType is the type of the workflow that is a sweep: many runs of one spec with
	// other parameters.
	SweepWorkflowType = "Sweep"
	// TrialWorkflowType is the type of the workflow of a trial of a sweep. It is a run like
	// others; lists of runs show the sweep in its place. See [TrialID].
	TrialWorkflowType = "Trial"
	// ActivityTrialsCheck finds the trials that have ended, of those that another execution of
	// a sweep has started.
	ActivityTrialsCheck = "TrialsCheck"
	// SignalStopTrials stops the trials of a sweep whose numbers match a pattern, and
	// SignalRetryTrials puts its failed trials back into the queue.
	SignalStopTrials  = "stop-trials"
	SignalRetryTrials = "retry-trials"
)

// Variables that only trials have.
const (
	// EnvSweep is the ID of the sweep, EnvTrial the number of the trial, and the names that
	// begin with EnvParamPrefix are its parameters.
	EnvSweep       = "CLUSTERRUN_SWEEP"
	EnvTrial       = "CLUSTERRUN_TRIAL"
	EnvParamPrefix = "CLUSTERRUN_PARAM_"
)

// IsTrialVariable reports whether a sweep sets a variable of that name in the specs of its trials.
func IsTrialVariable(name string) bool {
	return name == EnvSweep || name == EnvTrial || strings.HasPrefix(name, EnvParamPrefix)
}

// TrialID returns the run ID of a trial of a sweep.
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

// SweepStatus is the state of the trials of a sweep.
type SweepStatus struct {
	// Trials is the number of all trials. The others count those in each state: Skipped have not
	// been started and will not be.
	Trials    int `json:"trials"`
	Pending   int `json:"pending"`
	Running   int `json:"running"`
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	Skipped   int `json:"skipped"`
	// RunningTrials and FailedTrials are the numbers of the first 1,000 of them.
	RunningTrials []int `json:"running_trials,omitempty"`
	FailedTrials  []int `json:"failed_trials,omitempty"`
	// AtMost is the most trials at once, and MaxFailures the number of tolerated failures.
	AtMost      int  `json:"at_most"`
	MaxFailures *int `json:"max_failures,omitempty"`
	// RemainingSeconds estimates the time until the last trial ends, or 0 if that is not known.
	RemainingSeconds int `json:"remaining_seconds,omitempty"`
	// States has the states of all trials, from 0 on: the number of trials in a row in the same
	// state, and its letter (p: pending, r: running, s: succeeded, f: failed, c: cancelled, k:
	// skipped), such as "17s1f42p".
	States string `json:"states"`
}

// Ended returns the number of trials that have ended.
func (s *SweepStatus) Ended() int { return s.Succeeded + s.Failed + s.Cancelled }

// Counts returns for example "12 of 60 trials ended, 4 running, 2 failed (3, 17)".
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

// Summary returns the outcome of a sweep that has ended, for example "2 of 60 trials failed (3,
// 17), 58 succeeded".
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

// FormatRanges writes the first of some ascending numbers, with ranges, such as "3, 17-19". all is the
// number of all of them.
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
