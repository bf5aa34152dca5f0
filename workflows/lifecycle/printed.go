package lifecycle

import (
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// clockError is the largest expected difference between the clocks of two hosts. Errors on two
// hosts that are less apart have no known order.
const clockError = time.Second

// byEvidence returns the failure that made root's process lose its peer, if root's error speaks
// of that: the earliest error that another process had printed, and that was its own. That
// process need not have ended by itself: it was on its way out when it was stopped. If there is
// none, it returns nil. hostOf returns the host of a task.
func (a *account) byEvidence(root *spec.Failure, all []spec.Failure, hostOf func(*task) string) *spec.Failure {
	if root == nil || root.Evidence == spec.EvidenceRequest || root.Printed == nil || !root.Printed.LostPeer {
		return nil
	}
	var first *spec.Failure
	consider := func(f spec.Failure) {
		if f.Task == root.Task || f.Evidence == spec.EvidenceRequest || !f.Printed.Own() || !a.couldPrecede(f, root) {
			return
		}
		if first == nil || f.Printed.By.Before(first.Printed.By) {
			f.Evidence = spec.EvidencePrinted
			if f.ErrorTime.IsZero() {
				f.ErrorTime = f.Printed.By
			}
			first = &f
		}
	}
	for _, f := range all {
		consider(f)
	}
	for _, t := range a.tasks {
		if t.endedBy(spec.CauseCollateral) && !t.exit.Reported {
			consider(t.failure(hostOf(t)))
		}
	}
	return first
}

// couldPrecede reports whether the error of f may have been printed before the end of g. A
// process that was stopped because of g had printed its error before.
func (a *account) couldPrecede(f spec.Failure, g *spec.Failure) bool {
	after := f.Printed.After
	switch {
	case a.named[f.Task].stopped != "", after.IsZero(), g.Ended.IsZero():
		return true
	case f.Host == g.Host:
		return after.Before(g.Ended)
	}
	return after.Before(g.Ended.Add(clockError))
}

// firstError returns the process that printed an error of its own before root's process ended,
// if root does not say what went wrong. hostOf returns the host of a task.
func (a *account) firstError(root *spec.Failure, hostOf func(*task) string) *spec.Failure {
	since := root.Ended
	if p := root.Printed; p != nil && !p.By.IsZero() {
		since = p.By
	}
	var first *spec.Failure
	for _, t := range a.tasks {
		if t.Name() == root.Task || t.exit == nil || t.exit.OK() || t.endedBy(spec.CauseOperator) || !t.exit.Printed.Own() {
			continue
		}
		if by := t.exit.Printed.By; !by.IsZero() && by.Before(since) && (first == nil || by.Before(first.Printed.By)) {
			first = new(t.failure(hostOf(t)))
		}
	}
	return first
}
