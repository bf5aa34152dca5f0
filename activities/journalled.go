package activities

import (
	"github.com/clusterrun/clusterrun/activities/process/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// LastExits returns how the last processes of tasks ended, by task, from the journal of an
// owner's supervisor that has ended. Tasks whose end was not journalled are left out.
func LastExits(stateDir string) (map[string]spec.Exit, error) {
	processes, err := supervisor.Journalled(stateDir)
	if err != nil {
		return nil, err
	}
	exits := map[string]spec.Exit{}
	for _, p := range processes { // the last of a task comes last
		delete(exits, p.Key.Task)
		if _, err := (*plan)(nil).userOf(p); err != nil && p.Exit != nil {
			exits[p.Key.Task] = unread(exitOf(p, true, ""), err)
		} else if p.Exit != nil {
			exits[p.Key.Task], _ = describeExit("", p, true, "")
		}
	}
	return exits, nil
}
