package steptime

import (
	"math"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

const (
	// window is the number of reports kept per task. It is divisible by 2 to 6, so that a program
	// in which every second to sixth step is long shows the same share of long steps at any time.
	window = 60
	// least is the minimum number of steps, and of reports, for a conclusion.
	least = 10
	// At either end, one report in cutShare is dropped.
	cutShare = 5
)

// report is a report of steps.
type report struct{ steps, seconds float64 }

// Series contains the latest steps of a task's process. The zero value is empty.
type Series struct {
	barriers bool
	begun    bool
	step     float64
	at       time.Duration
	reports  [window]report
	count    int // over all reports
}

// Step records that the process reached a step after working for the given time. It returns the
// number of steps since the last report and their duration. Both are 0 if they are unknown, as for
// the first report, a repeated step, or an earlier step, such as at the start of an epoch.
func (s *Series) Step(step float64, worked time.Duration) (steps float64, took time.Duration) {
	switch {
	case math.IsNaN(step) || math.IsInf(step, 0), s.begun && step == s.step:
		return 0, 0
	case s.begun && step > s.step && worked >= s.at:
		steps, took = step-s.step, worked-s.at
		s.reports[s.count%window] = report{steps, took.Seconds()}
		s.count++
	}
	s.begun, s.step, s.at = true, step, worked
	return steps, took
}

// Round records a barrier round of all tasks, unless the program reports steps. It returns the same
// values as [Series.Step].
func (s *Series) Round(worked time.Duration) (steps float64, took time.Duration) {
	if s.begun && !s.barriers {
		return 0, 0
	}
	s.barriers = true
	return s.Step(s.step+1, worked)
}

// Progress records a step counted by the program. It drops rounds that were recorded earlier.
func (s *Series) Progress(step float64, worked time.Duration) (steps float64, took time.Duration) {
	if s.barriers {
		*s = Series{}
	}
	return s.Step(step, worked)
}

// Time returns the process's typical step duration, or nil if no step was reported.
func (s *Series) Time() *spec.StepTime {
	if s.count == 0 {
		return nil
	}
	known := make([]report, 0, window)
	steps := 0.0
	for i := max(0, s.count-window); i < s.count; i++ {
		known = append(known, s.reports[i%window])
		steps += known[len(known)-1].steps
	}
	t := &spec.StepTime{Steps: int(min(steps, math.MaxInt32)), Barriers: s.barriers}
	if len(known) >= least && t.Steps >= least {
		half := len(known) / 2
		t.Seconds = micro(min(usual(known[:half]), usual(known[half:])))
	}
	return t
}

// usual returns the mean step duration, excluding the shortest and the longest steps.
func usual(reports []report) float64 {
	each := list.Of(reports, func(r report) float64 { return r.seconds / r.steps })
	slices.Sort(each)
	cut := len(each) / cutShare
	each = each[cut : len(each)-cut]
	sum := 0.0
	for _, seconds := range each {
		sum += seconds
	}
	return sum / float64(len(each))
}

// micro rounds seconds to microseconds, to keep messages and histories short. It caps them at
// about a year.
func micro(seconds float64) float64 { return math.Round(min(seconds, 1<<25)*1e6) / 1e6 }
