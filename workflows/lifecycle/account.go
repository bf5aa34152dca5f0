package lifecycle

import "github.com/clusterrun/clusterrun/workflows/spec"

// account records a run's tasks, their exits, and why the run finishes. Its methods judge the
// exits; they neither depend on the phase nor cause actions.
type account struct {
	spec *spec.RunSpec
	taskList
	// decided records why the run finishes. The first decision stands; later events can only hasten
	// the end.
	decided   decision
	decidedAt int    // the number of arrivals at the decision
	reason    string // why the run was cancelled, as given by an operator, or could not be placed
	group     group  // of restart scope "group"
	together  together
	requeue   requeue
	captured  // last
	lost      lostPeer
}

// decide records why the run finishes, unless that is already decided.
func (a *account) decide(d decision) {
	if a.decided == undecided {
		a.decided, a.decidedAt = d, a.arrivals
	}
}
