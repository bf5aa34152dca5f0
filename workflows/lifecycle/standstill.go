package lifecycle

import "github.com/clusterrun/clusterrun/workflows/spec"

// standstill counts consecutive failed generations that did not get further than earlier
// generations, in steps. A generation that has reported no step counts as one.
type standstill struct {
	// Furthest is the furthest step, or nil if none was reported.
	Furthest *float64 `json:"furthest,omitempty"`
	// Failed reports whether a generation has failed. Restarts counts the consecutive later
	// generations that did not get further.
	Failed   bool `json:"failed,omitempty"`
	Restarts int  `json:"restarts,omitempty"`
}

// add adds a failed generation and the furthest step that its tasks reported.
func (s *standstill) add(step *float64) {
	further := step != nil && (s.Furthest == nil || *step > *s.Furthest)
	switch {
	case further || !s.Failed:
		s.Restarts = 0
	default:
		s.Restarts++
	}
	if further {
		s.Furthest = step
	}
	s.Failed = true
}

// given returns the count for the report, or nil if restarts may continue.
func (s *standstill) given(most *int) *spec.Standstill {
	if most == nil || s.Restarts < *most || !s.Failed {
		return nil
	}
	return &spec.Standstill{Restarts: s.Restarts, LastStep: s.Furthest}
}

// standsStill adds the generation that root stopped, and reports whether the run gives up. root may
// be nil.
func (m *Machine) standsStill(root *spec.Failure) bool {
	if !m.group.cause.ByItself() {
		return false // the program did not fail
	}
	var furthest *float64
	for _, t := range m.endedSince(0) {
		if t.Exit == nil || t.Exit.LastStep == nil || t.Exit.Restart < m.group.First {
			continue
		}
		if step := t.Exit.LastStep; furthest == nil || *step > *furthest {
			furthest = step
		}
	}
	m.group.Standstill.add(furthest)
	hopeless := root != nil && m.sameErrors(*root, furthest)
	return hopeless || m.group.Standstill.given(m.spec.GiveUpWithoutProgress) != nil
}
