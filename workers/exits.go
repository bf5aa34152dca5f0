package workers

import (
	"github.com/clusterrun/clusterrun/activities"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// LastExits returns how the last processes of tasks ended, by task, for the owner of a host
// worker that has ended and could tell nobody. Tasks are left out of which that was not
// written down.
func LastExits(stateDir string) (map[string]spec.Exit, error) {
	return activities.LastExits(stateDir)
}
