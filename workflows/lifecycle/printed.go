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
func (a *account) byEvidence(root *failure, all []failure, hostOf func(*task) string) *failure {
	if root == nil || root.evidence == spec.EvidenceRequest || root.exit.Printed == nil || !root.exit.Printed.LostPeer {
		return nil
	}
	var first *failure
	consider := func(f failure) {
		if f.task == root.task || f.evidence == spec.EvidenceRequest || !f.exit.Printed.Own() || !f.couldPrecede(root) {
			return
		}
		if first == nil || f.exit.Printed.By.Before(first.exit.Printed.By) {
			f.evidence = spec.EvidencePrinted
			if f.exit.ErrorTime.IsZero() {
				f.exit.ErrorTime = f.exit.Printed.By
			}
			first = &f
		}
	}
	for _, f := range all {
		consider(f)
	}
	for _, t := range a.tasks {
		if t.endedBy(spec.CauseCollateral) && !t.exit.Reported {
			consider(failure{task: t, exit: *t.exit, host: hostOf(t)})
		}
	}
	return first
}

// couldPrecede reports whether the error of f may have been printed before the end of g. A
// process that was stopped because of g had printed its error before.
func (f *failure) couldPrecede(g *failure) bool {
	after := f.exit.Printed.After
	switch {
	case f.task.stopped != "", after.IsZero(), g.exit.Ended.IsZero():
		return true
	case f.host == g.host:
		return after.Before(g.exit.Ended)
	}
	return after.Before(g.exit.Ended.Add(clockError))
}

// firstError returns the process that printed an error of its own before root's process ended,
// if root does not say what went wrong. hostOf returns the host of a task.
func (a *account) firstError(root *failure, hostOf func(*task) string) *failure {
	since := root.exit.Ended
	if p := root.exit.Printed; p != nil && !p.By.IsZero() {
		since = p.By
	}
	var first *failure
	for _, t := range a.tasks {
		if t == root.task || t.exit == nil || t.exit.OK() || t.endedBy(spec.CauseOperator) || !t.exit.Printed.Own() {
			continue
		}
		if by := t.exit.Printed.By; !by.IsZero() && by.Before(since) && (first == nil || by.Before(first.exit.Printed.By)) {
			first = &failure{task: t, exit: *t.exit, host: hostOf(t)}
		}
	}
	return first
}
