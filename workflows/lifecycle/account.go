package lifecycle

import "github.com/clusterrun/clusterrun/workflows/spec"

// account records a run's tasks with their exits, and why the run finishes. Its methods judge them
// without depending on the phase or causing actions.
type account struct {
	spec *spec.RunSpec
	taskList
	// decided records why the run finishes. The first decision stands; later events can only hasten
	// the end.
	decided   decision
	decidedAt int    // the number of arrivals at the decision
	reason    string // why it was cancelled or could not be placed, in an operator's words
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
