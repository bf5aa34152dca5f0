package sweep

import (
	"fmt"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Spec is a sweep workflow's input.
type Spec struct {
	// Run is each trial's spec, with parameter names in braces.
	Run  *spec.RunSpec `json:"run,omitempty"`
	Grid Grid          `json:"grid"`
	Rules
	// Owner is the user who started the sweep.
	Owner string `json:"owner,omitempty"`
}

// Rules limit a sweep.
type Rules struct {
	// AtMost limits how many trials run at a time.
	AtMost int `json:"at_most"`
	// MaxFailures is how many failed trials the sweep tolerates. After one more it does not start
	// another. nil means no limit.
	MaxFailures *int `json:"max_failures,omitempty"`
}

// Check returns an error if the rules are invalid.
func (r Rules) Check() error {
	switch {
	case r.AtMost < 1 || r.AtMost > MaxAtOnce:
		return fmt.Errorf("at_most is %d; use 1 to %d", r.AtMost, MaxAtOnce)
	case r.MaxFailures != nil && *r.MaxFailures < 0:
		return fmt.Errorf("max_failures is %d; use 0 or more", *r.MaxFailures)
	}
	return nil
}

const (
	// MaxAtOnce limits [Rules.AtMost], because a workflow may have at most 2,000 open children.
	MaxAtOnce = 1000
	// DefaultAtOnce is the default of `clusterrun submit`.
	DefaultAtOnce = 200
)

// Check checks a sweep before anything starts, and returns its trials.
func (s *Spec) Check(sweep string) (*Trials, error) {
	t, err := s.Grid.Parse()
	if err != nil {
		return nil, err
	}
	if err := s.Rules.Check(); err != nil {
		return nil, err
	}
	// A typing error is found in the first trial. The values of later trials may make a spec too
	// large or contain a relative directory.
	for trial := range t.Len() {
		one, err := s.Trial(t, sweep, trial)
		if err != nil {
			return nil, err
		}
		if trial < checkedTrials {
			if err := one.Validate(); err != nil {
				return nil, fmt.Errorf("trial %d: %w", trial, err)
			}
		}
	}
	return t, nil
}

// checkedTrials is how many trials' specs are validated before a sweep starts. Later, each trial
// also validates its spec.
const checkedTrials = 1000
