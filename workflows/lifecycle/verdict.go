package lifecycle

import (
	"slices"

	"github.com/clusterrun/clusterrun/workflows/exitcode"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// judge adds the verdict and its grounds to a result, and returns the failures, in order of
// arrival:
//
//	an error reported by a program > out of time > unexpected exit > cancelled > success
//
// This order determines the error type. The exit code and first_failure come from the earliest
// failure of any kind. A lost host ranks with unexpected exits. But if it is the earliest failure,
// it determines the type even if programs then reported errors, because these are consequences.
func (a *account) judge(r *spec.RunResult, e Released) []spec.Failure {
	failures := a.failures(e)
	root := a.rootOf(failures)
	hostOf := func(t *task) string { return e.Hosts[t.Name()] }
	instead := func(f *spec.Failure) {
		root = f
		failures = append(slices.DeleteFunc(failures, func(g spec.Failure) bool { return g.Task == f.Task }), *f)
	}
	if f := a.byEvidence(root, failures, hostOf); f != nil {
		r.FirstEnded = root.Task // root lost its peer
		instead(f)
	}
	if f := a.byStacks(root, hostOf); f != nil {
		instead(f)
	}
	var reports []spec.Failure
	for _, f := range failures {
		if reported(f) {
			reports = append(reports, f)
		}
	}
	report := earliest(reports)
	asked := a.operatorAsked()
	if asked != nil && (root == nil || a.arrival(*root) > a.together.after) {
		r.OperatorError = asked // no earlier failure exists
	}
	switch {
	case a.decided == byPlacement:
		r.Verdict, r.ErrorType, r.ExitCode = spec.VerdictFailed, spec.ErrPlacement, exitcode.Machinery
	case a.decided == byAfter:
		r.Verdict, r.ErrorType, r.ExitCode = spec.VerdictSkipped, spec.ErrSkipped, exitcode.Failed
	case a.decided == byNotice && root == nil:
		r.Verdict, r.ExitCode = spec.VerdictPreempted, exitcode.Preempted
	case a.decided == byTimeout && report == nil:
		r.Verdict, r.ErrorType, r.ExitCode, r.Limit = spec.VerdictTimedOut, spec.ErrSubprocessTimeout, exitcode.Timeout, a.spec.Timeout
	case a.decided == byMaxRunTime && report == nil:
		r.Verdict, r.ErrorType, r.ExitCode, r.Limit = spec.VerdictFailed, spec.ErrUnexpectedExit, exitcode.Timeout, a.spec.MaxRunTime
	case r.OperatorError != nil:
		r.Verdict, r.ErrorType, r.ExitCode = spec.VerdictFailed, spec.ErrSubprocess, exitcode.Failed
	case root != nil:
		r.Verdict, r.ErrorType, r.ExitCode = spec.VerdictFailed, typeOfFailure(*root, report != nil || asked != nil), exitCodeOf(*root)
	case a.stragglersFail():
		r.Verdict, r.ErrorType, r.ExitCode = spec.VerdictTimedOut, spec.ErrSubprocessTimeout, exitcode.Timeout
	case a.decided == byCancel || a.unfinished() != "":
		r.Verdict, r.ExitCode = spec.VerdictCancelled, exitcode.Interrupted
	default:
		r.Verdict = spec.VerdictSucceeded
	}
	if root == nil {
		return failures
	}
	r.FirstFailure = a.describe(*root)
	if report != nil && report.Task != root.Task {
		r.FirstReport = a.describe(*report)
	}
	if r.FirstEnded == "" && root.Evidence == "" {
		if f := a.firstError(root, hostOf); f != nil {
			r.FirstError = a.describe(*f)
		} else {
			r.DoneBefore = a.doneBefore(root, hostOf)
			if root.LostPeer() {
				r.LivedOn = a.lost.livedOn
			}
		}
	}
	return failures
}

// operatorAsked returns the error that an operator gave when asking the tasks to stop.
func (a *account) operatorAsked() *spec.TogetherError {
	if w := a.together.request; w != nil && w.Task == "" {
		return a.together.err(a.spec)
	}
	return nil
}

// typeOfFailure returns the type of the root cause. said reports whether a program or an operator
// reported an error.
func typeOfFailure(root spec.Failure, said bool) string {
	switch {
	case root.Cause == spec.CauseHostLost:
		return spec.ErrHostLost
	case said:
		return spec.ErrSubprocess
	default:
		return spec.ErrUnexpectedExit
	}
}

func exitCodeOf(f spec.Failure) int {
	// The process had reported or shown its error, and was stopped before it exited.
	stopped := (f.Reported || f.Evidence == spec.EvidencePrinted || f.Evidence == spec.EvidenceStacks) && !f.Cause.ByItself()
	switch code := f.ExitCode; {
	case f.Cause == spec.CauseHostLost:
		return exitcode.Machinery
	case stopped && code < 0:
		return exitcode.Failed // clusterrun sent the signal
	case code < 0:
		return exitcode.OfSignal(-code)
	case code == 0:
		return exitcode.Failed // in spite of it
	default:
		return code
	}
}

// unfinished returns why a run without failures did not succeed, or an empty string if it
// succeeded. Such a run fails to succeed if an operator stopped what its success depends on: the
// chief or, if there is none, every task. A single terminated worker does not matter, nor does a
// straggler that does not count as a failure.
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

func (t *task) ok() bool { return t.Exit != nil && t.Exit.OK() }
