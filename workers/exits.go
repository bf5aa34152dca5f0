package workers

import (
	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// LastExits returns how each task's last process exited. It is for the owner of a host worker that
// exited without reporting this. It omits tasks with no exit in the journal.
func LastExits(stateDir string) (map[string]spec.Exit, error) {
	return activities.LastExits(stateDir)
}

// Holds reports whether the host worker with the given state directory has not finished with a run.
// The host worker need not be running.
func Holds(stateDir string, run runkey.Run) bool { return activities.Holds(stateDir, run) }
