package lifecycle

import (
	"strconv"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// clockError is how much the clocks of two hosts may differ. Errors on two hosts that are less
// apart have no known order.
const clockError = time.Second

// byEvidence returns the failure that made root's process lose its peer, if root's error speaks
// of that: the earliest error that another process had printed, and that was its own. That
// process need not have ended by itself: it was on its way out when it was stopped. If there is
// none, it returns nil. hostOf returns the host of a task.
func (m *Machine) byEvidence(root *failure, all []failure, hostOf func(*task) string) *failure {
	if root == nil || root.request != nil || root.exit.Printed == nil || !root.exit.Printed.LostPeer {
		return nil
	}
	var first *failure
	consider := func(f failure) {
		if f.task == root.task || f.request != nil || !f.exit.Printed.Own() || !f.couldPrecede(root) {
			return
		}
		if first == nil || f.exit.Printed.By.Before(first.exit.Printed.By) {
			f.shown = true
			first = &f
		}
	}
	for _, f := range all {
		consider(f)
	}
	for _, t := range m.tasks {
		if t.endedBy(spec.CauseCollateral) && !t.exit.Reported {
			consider(failure{task: t, exit: *t.exit, host: hostOf(t)})
		}
	}
	return first
}

// couldPrecede reports whether the printed error of f can have come before the end of g. A
// process that was stopped because of g had printed it before.
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

// firstError writes the error that a process printed first, if the process that ended first does
// not say what went wrong.
func (m *Machine) firstError(w *writer, j judgement) {
	if j.effect != nil {
		w.line("First error: %s%s %s ended: %s", j.rank(j.root.task), j.before(*j.root, *j.effect), j.effect.task.Name(), j.root.exit.Printed)
		return
	}
	root := *j.root
	since := root.exit.Ended
	if p := root.exit.Printed; p != nil && !p.By.IsZero() {
		since = p.By
	}
	var first *failure
	for _, t := range m.tasks {
		if t == root.task || t.exit == nil || t.exit.OK() || t.endedBy(spec.CauseOperator) || !t.exit.Printed.Own() {
			continue
		}
		f := failure{task: t, exit: *t.exit, host: j.hosts[t.Name()]}
		if by := t.exit.Printed.By; !by.IsZero() && by.Before(since) && (first == nil || by.Before(first.exit.Printed.By)) {
			first = &f
		}
	}
	switch p := root.exit.Printed; {
	case first != nil:
		w.line("First error: %s%s %s ended: %s", j.rank(first.task), j.before(*first, root), root.task.Name(), first.exit.Printed)
	case p != nil && p.LostPeer && len(m.tasks) > 1:
		w.line("Its error speaks of a lost peer (%s), and no other task had printed an error of its own.", p)
	}
}

// rank returns the name and the rank of a task.
func (j judgement) rank(t *task) string { return t.Name() + " (rank " + strconv.Itoa(t.Rank) + ")" }

// before returns how long before the end of g the error of f was printed, as part of a
// sentence. It is empty if that is not known.
func (j judgement) before(f, g failure) string {
	by, ended := f.exit.Printed.By, g.exit.Ended
	if by.IsZero() || ended.IsZero() {
		return ", before"
	}
	d := ended.Sub(by)
	switch {
	case f.host == g.host && d > 0:
		return ", " + span(int64(d)) + " before"
	case f.host == g.host:
		return ", before"
	case d.Abs() < clockError:
		return ", by the clocks of their hosts at about the time that"
	case d < 0:
		return ", before (though not by the clocks of their hosts)"
	}
	return ", by the clocks of their hosts " + span(int64(d)) + " before"
}
