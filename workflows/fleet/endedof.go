package fleet

import (
	"fmt"
	"slices"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// EndedOf returns how a run finished on its hosts, with the root causes of its end and its
// restarts.
func EndedOf(r *spec.RunResult) *Ended {
	e := &Ended{Kind: EndStopped}
	if r.Verdict == spec.VerdictSucceeded {
		e.Kind = EndCompleted
	}
	if f := r.FirstFailure; f != nil {
		e.add(f.Host, f.Exit)
	}
	e.addRestarts(r.GroupRestarts)
	for _, t := range r.Tasks {
		for _, exit := range t.Exits {
			if r.Generation == 0 && exit.Cause.ByItself() { // the task was restarted, the group was not
				e.add(t.Host, exit)
			}
		}
	}
	return e
}

// RestartedBy returns the failures that restarted a run and that their hosts may have caused, or
// nil.
func RestartedBy(restarts []spec.GroupRestart) *Ended {
	var e Ended
	e.addRestarts(restarts)
	e.Failures = slices.DeleteFunc(e.Failures, func(f HostFailure) bool { return !isOfHost(f.Kind) })
	if len(e.Failures) == 0 {
		return nil
	}
	return &e
}

func (e *Ended) addRestarts(restarts []spec.GroupRestart) {
	for _, r := range slices.Backward(restarts) {
		if r.Failure != nil {
			e.add(r.Failure.Host, r.Failure.Exit)
		}
	}
}

// add adds a failure on a host, once per kind.
func (e *Ended) add(host string, exit spec.Exit) {
	f := HostFailure{Host: host, Kind: kindOf(exit), At: exit.Ended}
	known := slices.ContainsFunc(e.Failures, func(o HostFailure) bool { return o.Host == f.Host && o.Kind == f.Kind })
	if host != "" && f.Kind != "" && len(e.Failures) < maxFailures && !known {
		e.Failures = append(e.Failures, f)
	}
}

// kindOf returns a failure's kind, or "" if the process has not failed.
func kindOf(exit spec.Exit) string {
	switch {
	case exit.Cause == spec.CauseOrigin && spec.HardwareXid(exit.Xid):
		return fmt.Sprintf("Xid %d", exit.Xid)
	case exit.Cause == spec.CauseOrigin && exit.ExitCode < 0:
		return spec.SignalName(-exit.ExitCode)
	case exit.Cause == spec.CauseOrigin:
		return "failed"
	case exit.Cause == spec.CauseCompleted, exit.Cause == spec.CauseOperator, exit.Cause == spec.CauseCollateral:
		return ""
	}
	return string(exit.Cause)
}
