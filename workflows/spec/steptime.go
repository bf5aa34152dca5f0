package spec

import (
	"fmt"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/plural"
)

// StepTime is how long the process of a task takes for a step, without its waits at barriers.
type StepTime struct {
	// Seconds is the usual time of its latest steps; 0 while too few are known.
	Seconds float64 `json:"seconds,omitempty"`
	// Steps is how many steps are known.
	Steps int `json:"steps"`
	// Barriers reports whether its steps are the rounds of barriers of all tasks. Otherwise the
	// program counts its steps itself, by its progress.
	Barriers bool `json:"barriers,omitempty"`
}

// Slow is a task that takes longer for a step than others of its type, or a host all of whose
// tasks do.
type Slow struct {
	// Task is empty where all Tasks of the type on the host are slow.
	Task  string `json:"task,omitempty"`
	Rank  int    `json:"rank"`
	Host  string `json:"host,omitempty"`
	Tasks int    `json:"tasks,omitempty"`
	// Ratio is Seconds divided by Others, the median of the other tasks.
	Ratio   float64 `json:"ratio"`
	Seconds float64 `json:"seconds"`
	Others  float64 `json:"others_seconds"`
	// Steps is how many steps of the task are known, and Barriers what they are; see [StepTime].
	Steps    int  `json:"steps"`
	Barriers bool `json:"barriers,omitempty"`
}

// String returns "host gpu-3: 1.8 × the median of the others over 50 rounds (90ms and 50ms)".
func (s Slow) String() string {
	who := fmt.Sprintf("%s (rank %d)", s.Task, s.Rank)
	switch {
	case s.Task == "":
		who = "host " + s.Host
	case s.Host != "":
		who += " on " + s.Host
	}
	return fmt.Sprintf("%s: %.1f × the median of the others over %s (%s and %s)", who, s.Ratio, s.count(), took(s.Seconds), took(s.Others))
}

func (s Slow) count() string {
	if s.Barriers {
		return plural.Of(s.Steps, "round", "rounds")
	}
	return plural.Of(s.Steps, "step", "steps")
}

// took writes seconds with three digits at most.
func took(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		switch {
		case d >= 100*unit:
			return d.Round(unit).String()
		case d >= 10*unit:
			return d.Round(unit / 10).String()
		case d >= unit:
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}
