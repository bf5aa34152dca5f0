package lifecycle

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// judgement is the verdict and its grounds.
type judgement struct {
	verdict   spec.Verdict
	errorType string
	exitCode  int
	failures  []failure // in order of arrival
	root      *failure  // the earliest
	report    *failure  // the first that a program reported
	// effect is the process that ended first, if it is not the root cause: it lost its peer.
	effect *failure
	// asked is the error of an operator's stop, if no failure came before it.
	asked *spec.TogetherError
}

// judge returns the verdict:
//
//	an error reported by a program > out of time > unexpected exit > cancelled > success
//
// The type of the error follows this order; the exit code and first_failure come from the
// earliest failure of any kind. A lost host ranks with unexpected exits, but if it was the
// earliest failure it sets the type even if programs then reported errors: those were
// consequences.
func (a *account) judge(e Released) judgement {
	j := judgement{failures: a.failures(e)}
	j.root = a.rootOf(j.failures)
	hostOf := func(t *task) string { return e.Hosts[t.Name()] }
	if f := a.byEvidence(j.root, j.failures, hostOf); f != nil {
		effect := *j.root
		j.effect, j.root = &effect, f
		j.failures = append(slices.DeleteFunc(j.failures, func(g failure) bool { return g.task == f.task }), *f)
	}
	if f := a.byStacks(j.root, hostOf); f != nil {
		j.root = f
		j.failures = append(slices.DeleteFunc(j.failures, func(g failure) bool { return g.task == f.task }), *f)
	}
	var reports []failure
	for _, f := range j.failures {
		if f.reported() {
			reports = append(reports, f)
		}
	}
	j.report = earliest(reports)
	asked := a.operatorAsked()
	if asked != nil && (j.root == nil || j.root.task.arrived > a.together.after) {
		j.asked = asked
	}
	switch {
	case a.decided == byPlacement:
		j.verdict, j.errorType, j.exitCode = spec.VerdictFailed, spec.ErrPlacement, exitcode.Machinery
	case a.decided == byAfter:
		j.verdict, j.errorType, j.exitCode = spec.VerdictSkipped, spec.ErrSkipped, exitcode.Failed
	case a.decided == byNotice && j.root == nil:
		j.verdict, j.exitCode = spec.VerdictPreempted, exitcode.Preempted
	case a.decided == byTimeout && j.report == nil:
		j.verdict, j.errorType, j.exitCode = spec.VerdictTimedOut, spec.ErrSubprocessTimeout, exitcode.Timeout
	case a.decided == byMaxRunTime && j.report == nil:
		j.verdict, j.errorType, j.exitCode = spec.VerdictFailed, spec.ErrUnexpectedExit, exitcode.Timeout
	case j.asked != nil:
		j.verdict, j.errorType, j.exitCode = spec.VerdictFailed, spec.ErrSubprocess, exitcode.Failed
	case j.root != nil:
		j.verdict, j.errorType, j.exitCode = spec.VerdictFailed, j.typeOfFailure(asked != nil), exitCodeOf(j.root)
	case a.stragglersFail():
		j.verdict, j.errorType, j.exitCode = spec.VerdictTimedOut, spec.ErrSubprocessTimeout, exitcode.Timeout
	case a.decided == byCancel || a.unfinished() != "":
		j.verdict, j.exitCode = spec.VerdictCancelled, exitcode.Interrupted
	default:
		j.verdict = spec.VerdictSucceeded
	}
	return j
}

// operatorAsked returns the error with which an operator asked the tasks to stop.
func (a *account) operatorAsked() *spec.TogetherError {
	if w := a.together.request; w != nil && w.Task == "" {
		return a.together.err(a.spec)
	}
	return nil
}

// typeOfFailure returns the type of the root cause. asked reports whether an operator
// reported an error.
func (j judgement) typeOfFailure(asked bool) string {
	switch {
	case j.root.hostLost():
		return spec.ErrHostLost
	case j.report != nil || asked:
		return spec.ErrSubprocess
	default:
		return spec.ErrUnexpectedExit
	}
}

func exitCodeOf(f *failure) int {
	switch code := f.exit.ExitCode; {
	case f.hostLost():
		return exitcode.Machinery
	case f.stopped() && code < 0:
		return exitcode.Failed // clusterrun sent the signal
	case code < 0:
		return exitcode.OfSignal(-code)
	case code == 0:
		return exitcode.Failed // in spite of it
	default:
		return code
	}
}

// unfinished returns why a run without failures did not succeed: an operator ended what success
// depends on, which is the chief or, without one, every task. It is empty if the run succeeded.
// One terminated worker among others does not matter, nor does a task stopped at the end of a
// stop together whose stragglers do not count as failures.
func (a *account) unfinished() string {
	finished := len(a.tasks) == 0
	for _, t := range a.tasks {
		done := t.ok() || a.decided == byTogether && t.stopped == spec.CauseCollateral
		if (a.decided == byChief || a.decided == byTogether) && a.isChief(t) && !done {
			return t.Name() + " was terminated"
		}
		finished = finished || done
	}
	if finished {
		return ""
	}
	return "every task was terminated"
}

func (t *task) ok() bool { return t.exit != nil && t.exit.OK() }
