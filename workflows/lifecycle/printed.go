package lifecycle

import (
	"slices"
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
	if root == nil || root.Evidence == spec.EvidenceRequest || !root.LostPeer() {
		return nil
	}
	var first *spec.Failure
	consider := func(f spec.Failure) {
		if f.Task == root.Task || f.Evidence == spec.EvidenceRequest || !ownEnd(f) || !a.couldPrecede(f, root) {
			return
		}
		if first != nil && !shown(f).Before(shown(*first)) {
			return
		}
		if f.Printed.Own() {
			f.Evidence = spec.EvidencePrinted
			if f.ErrorTime.IsZero() {
				f.ErrorTime = f.Printed.By
			}
		}
		first = &f
	}
	for _, f := range all {
		consider(f)
	}
	for _, t := range a.tasks {
		if t.endedBy(spec.CauseCollateral) && !t.Exit.Reported {
			consider(t.failure(hostOf(t)))
		}
	}
	return first
}

// ownEnd reports whether a process printed an error of its own, or was killed by something else
// than the loss of a peer and clusterrun.
func ownEnd(f spec.Failure) bool {
	switch {
	case f.Printed != nil:
		return f.Printed.Own()
	case f.Cause == spec.CauseOOM:
		return true
	}
	return f.Cause == spec.CauseOrigin && f.ExitCode < 0 && f.Signal != "SIGPIPE" && f.Signal != "SIGABRT"
}

// shown returns when a process showed its failure, by the wall clock of its host.
func shown(f spec.Failure) time.Time {
	if f.Printed != nil {
		return f.Printed.By
	}
	return f.Ended
}

// couldPrecede reports whether f may be the reason for the end of g, whose process lost its peer.
// A process that was stopped because of g had shown its error before. Others may show it
// later: until then they clean up, with their connections closed.
func (a *account) couldPrecede(f spec.Failure, g *spec.Failure) bool {
	after := f.Ended
	if f.Printed != nil {
		after = f.Printed.After
	}
	t := a.named[f.Task]
	if t.stopped != "" || after.IsZero() || g.Ended.IsZero() {
		return true
	}
	latest := g.Ended.Add(a.spec.ErrorGraceOf(t.Task))
	if f.Host != g.Host {
		latest = latest.Add(clockError)
	}
	return after.Before(latest)
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
		if t.Name() == root.Task || t.Exit == nil || t.Exit.OK() || t.endedBy(spec.CauseOperator) || !t.Exit.Printed.Own() {
			continue
		}
		if by := t.Exit.Printed.By; !by.IsZero() && by.Before(since) && (first == nil || by.Before(first.Printed.By)) {
			first = new(t.failure(hostOf(t)))
		}
	}
	return first
}

// maxDoneBefore is the most tasks that a result names as done before a peer was lost.
const maxDoneBefore = 4

// doneBefore returns the tasks that had ended well when root's process lost its peer, the last
// of them: with fewer steps than the others a rank ends while they still need it. hostOf
// returns the host of a task.
func (a *account) doneBefore(root *spec.Failure, hostOf func(*task) string) []spec.TaskResult {
	if !root.LostPeer() || root.Evidence != "" {
		return nil
	}
	var done []spec.TaskResult
	for _, t := range a.tasks {
		if host := hostOf(t); !t.absent && t.ok() && a.couldLeave(t, host, root) {
			exit := *t.Exit
			exit.Usage, exit.Steps = spec.Usage{}, nil
			done = append(done, spec.TaskResult{Name: t.Name(), Type: t.Type, Index: t.Index, Rank: t.Rank, Host: host, Exit: &exit})
		}
	}
	slices.SortStableFunc(done, func(a, b spec.TaskResult) int { return a.Exit.Ended.Compare(b.Exit.Ended) })
	return done[max(0, len(done)-maxDoneBefore):]
}

// couldLeave reports whether root's process may have lost the process of t, which has ended well on
// that host. The connections of a process may be closed for a while before it ends.
func (a *account) couldLeave(t *task, host string, root *spec.Failure) bool {
	if t.stopped != "" && t.Arrived > a.arrival(*root) {
		return host == root.Host && 0 < t.Exit.BootNanos && t.Exit.BootNanos < root.BootNanos
	}
	ended, lost := t.Exit.Ended, root.Ended
	if ended.IsZero() || lost.IsZero() {
		return t.Arrived < a.arrival(*root)
	}
	if host != root.Host {
		lost = lost.Add(clockError)
	}
	return ended.Before(lost.Add(a.spec.ErrorGraceOf(t.Task)))
}
