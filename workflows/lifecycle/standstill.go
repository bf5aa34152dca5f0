package lifecycle

import "github.com/clusterrun/clusterrun/workflows/spec"

// standstill counts the generations in a row that have failed without a step beyond those of
// the generations before. A generation that has reported no step counts as one.
type standstill struct {
	// furthest is the furthest step, or nil if none was reported.
	furthest *float64
	// failed reports whether a generation has failed. restarts is the number of generations in
	// a row after it that reached no further.
	failed   bool
	restarts int
}

// add adds a generation that has failed, and the furthest step that its tasks have reported.
func (s *standstill) add(step *float64) {
	further := step != nil && (s.furthest == nil || *step > *s.furthest)
	switch {
	case further || !s.failed:
		s.restarts = 0
	default:
		s.restarts++
	}
	if further {
		s.furthest = step
	}
	s.failed = true
}

// given returns the count for the report, or nil if restarts may continue.
func (s *standstill) given(most *int) *spec.Standstill {
	if most == nil || s.restarts < *most || !s.failed {
		return nil
	}
	return &spec.Standstill{Restarts: s.restarts, LastStep: s.furthest}
}

// standsStill adds the generation that has ended because of root, and reports whether the run gives
// up. root may be nil.
func (m *Machine) standsStill(root *spec.Failure) bool {
	if !m.group.cause.ByItself() {
		return false // the program did not fail
	}
	var furthest *float64
	for _, t := range m.endedSince(0) {
		if t.exit == nil || t.exit.LastStep == nil || t.exit.Restart < m.group.first {
			continue
		}
		if step := t.exit.LastStep; furthest == nil || *step > *furthest {
			furthest = step
		}
	}
	m.group.standstill.add(furthest)
	hopeless := root != nil && m.sameErrors(*root, furthest)
	return hopeless || m.group.standstill.given(m.spec.GiveUpWithoutProgress) != nil
}
