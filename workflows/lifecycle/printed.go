package lifecycle

import (
	"slices"
	"time"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// clockError is the largest expected difference between two hosts' clocks. The order of errors on
// different hosts within this time is unknown.
const clockError = time.Second

// byEvidence returns the failure that made root's process lose its peer, if root's error mentions a
// lost peer. It is the earliest error that another process printed and that was not about a peer.
// The process that printed it need not have exited on its own. If there is no such error,
// byEvidence returns nil. hostOf returns a task's host.
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

// ownEnd reports whether a process printed an error that is not about a lost peer, or was killed by
// something other than clusterrun or a peer's loss.
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

// couldPrecede reports whether f may have caused g, a failure due to a lost peer. If f's process
// was stopped because of g, it must have printed its error before g. Otherwise it may have printed
// the error later, because it cleans up after its connections close.
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

// firstError returns the process that printed an error that is not about a peer before root's
// process exited, if root does not explain the failure. hostOf returns a task's host.
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

// maxDoneBefore limits the tasks that a result names as done before a peer was lost.
const maxDoneBefore = 4

// doneBefore returns the last task that had succeeded when root's process lost its peer, because a
// rank with fewer steps exits while other ranks still need it. hostOf returns a task's host.
func (a *account) doneBefore(root *spec.Failure, hostOf func(*task) string) []spec.TaskResult {
	if !root.LostPeer() || root.Evidence != "" {
		return nil
	}
	var done []spec.TaskResult
	for _, t := range a.tasks {
		if host := hostOf(t); !t.absent && t.ok() && a.couldLeave(t, host, root) {
			exit := *t.Exit
			exit.Usage, exit.Steps, exit.Metrics = spec.Usage{}, nil, nil
			done = append(done, spec.TaskResult{Name: t.Name(), Type: t.Type, Index: t.Index, Rank: t.Rank, Host: host, Exit: &exit})
		}
	}
	slices.SortStableFunc(done, func(a, b spec.TaskResult) int { return a.Exit.Ended.Compare(b.Exit.Ended) })
	return done[max(0, len(done)-maxDoneBefore):]
}

// couldLeave reports whether t, which succeeded on the given host, may be the peer that root's
// process lost. A process may close its connections some time before it exits.
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
