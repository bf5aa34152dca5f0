package lifecycle

import "github.com/clusterrun/clusterrun/workflows/spec"

// Exit codes of `clusterrun run` that are not a program's own.
const (
	exitTimeout   = 124
	exitMachinery = 125
	exitCancelled = 130
	// exitAsked is that of a run that an operator stopped with an error.
	exitAsked = 1
)

// judgement is the verdict and what it rests on.
type judgement struct {
	verdict   spec.Verdict
	errorType string
	exitCode  int
	failures  []failure // in order of arrival
	root      *failure  // the earliest
	report    *failure  // the first that a program reported
	// asked is the error of an operator's stop, where no failure came before it.
	asked *spec.TogetherError
	hosts map[string]string
}

// judge gives the verdict:
//
//	an error reported by a program > out of time > unexpected exit > cancelled > success
//
// The type of the error follows this order; the exit code and first_failure are
// those of the earliest failure of any kind. A lost host ranks with unexpected
// exits, but where it was the earliest failure it gives the error its type even
// if programs then reported theirs: those were consequences.
func (m *Machine) judge(e Released) judgement {
	j := judgement{failures: m.failures(e), hosts: e.Hosts}
	j.root = earliest(j.failures)
	var reports []failure
	for _, f := range j.failures {
		if f.reported() {
			reports = append(reports, f)
		}
	}
	j.report = earliest(reports)
	asked := m.operatorAsked()
	if asked != nil && (j.root == nil || j.root.task.arrived > m.together.after) {
		j.asked = asked
	}
	switch {
	case m.decided == byPlacement:
		j.verdict, j.errorType, j.exitCode = spec.VerdictFailed, spec.ErrPlacement, exitMachinery
	case m.decided == byTimeout && j.report == nil:
		j.verdict, j.errorType, j.exitCode = spec.VerdictTimedOut, spec.ErrSubprocessTimeout, exitTimeout
	case m.decided == byMaxRunTime && j.report == nil:
		j.verdict, j.errorType, j.exitCode = spec.VerdictFailed, spec.ErrUnexpectedExit, exitTimeout
	case j.asked != nil:
		j.verdict, j.errorType, j.exitCode = spec.VerdictFailed, spec.ErrSubprocess, exitAsked
	case j.root != nil:
		j.verdict, j.errorType, j.exitCode = spec.VerdictFailed, j.typeOfFailure(asked != nil), exitCodeOf(j.root)
	case m.late():
		j.verdict, j.errorType, j.exitCode = spec.VerdictTimedOut, spec.ErrSubprocessTimeout, exitTimeout
	case m.decided == byCancel || m.unfinished() != "":
		j.verdict, j.exitCode = spec.VerdictCancelled, exitCancelled
	default:
		j.verdict = spec.VerdictSucceeded
	}
	return j
}

// operatorAsked is the error with which an operator had the tasks stop.
func (m *Machine) operatorAsked() *spec.TogetherError {
	if w := m.together.wish; w != nil && w.Task == "" {
		return m.together.err(m.spec)
	}
	return nil
}

// typeOfFailure is the type of the root cause; asked says that an operator has
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
		return exitMachinery
	case f.stopped() && code < 0:
		return 1 // the signal was ours
	case code < 0:
		return 128 - code
	case code == 0:
		return 1 // it failed, whatever its exit code says
	default:
		return code
	}
}

// unfinished says why a run without failures has no success to speak of: an
// operator ended what the success depends on, which is the chief, or where
// nothing depends on a chief, every single task. One terminated worker among
// others takes nothing away (MPR-06).
//
// Who was stopped at the end of a stop together has done its part, where the spec
// says that stragglers are no failure.
func (m *Machine) unfinished() string {
	finished := len(m.tasks) == 0
	for _, t := range m.tasks {
		done := t.ok() || m.decided == byTogether && t.stopped == spec.CauseCollateral
		if (m.decided == byChief || m.decided == byTogether) && m.isChief(t) && !done {
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
