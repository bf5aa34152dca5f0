package steptime

import (
	"math"
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/list"
)

const (
	// window is the number of reports of a task that are kept. Periods of 2, 3, 4, 5 and 6
	// steps divide it, so that programs with such a rhythm have the same share of long steps at
	// any time.
	window = 60
	// least is the fewest steps, and reports of them, that allow a conclusion.
	least = 10
	// cutShare is the inverse of the share of the reports that is left out at either end.
	cutShare = 5
)

// report is one report of steps.
type report struct{ steps, seconds float64 }

// Series are the latest steps of the process of a task. The zero value has none.
type Series struct {
	barriers bool
	begun    bool
	step     float64
	at       time.Duration
	reports  [window]report
	count    int // of all reports
	total    report
}

// Step records that the process has reached a step, after it has worked for so long. It returns
// the number of steps since the last report and the time that they took. Both are 0 if that is
// not known: with the first report, for the same step again, and for an earlier one, as at the
// start of an epoch.
func (s *Series) Step(step float64, worked time.Duration) (steps float64, took time.Duration) {
	switch {
	case math.IsNaN(step) || math.IsInf(step, 0), s.begun && step == s.step:
		return 0, 0
	case s.begun && step > s.step && worked >= s.at:
		steps, took = step-s.step, worked-s.at
		s.reports[s.count%window] = report{steps, took.Seconds()}
		s.count++
		s.total.steps += steps
		s.total.seconds += took.Seconds()
	}
	s.begun, s.step, s.at = true, step, worked
	return steps, took
}

// Round records a round of a barrier of all tasks, if the program does not count its steps itself.
// It returns what [Series.Step] does.
func (s *Series) Round(worked time.Duration) (steps float64, took time.Duration) {
	if s.begun && !s.barriers {
		return 0, 0
	}
	s.barriers = true
	return s.Step(s.step+1, worked)
}

// Progress records a step that the program counts itself. It drops the rounds recorded before.
func (s *Series) Progress(step float64, worked time.Duration) (steps float64, took time.Duration) {
	if s.barriers {
		*s = Series{}
	}
	return s.Step(step, worked)
}

// Time returns how long the process usually takes for a step, or nil if it has not reported one.
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

// Total returns the number of all steps that were recorded, and the seconds that they took.
func (s *Series) Total() (steps, seconds float64) { return s.total.steps, s.total.seconds }

// usual returns the mean time of a step, without the shortest and the longest ones.
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

// micro rounds seconds to microseconds, to keep messages and histories short. More than a year
// is cut.
func micro(seconds float64) float64 { return math.Round(min(seconds, 1<<25)*1e6) / 1e6 }
