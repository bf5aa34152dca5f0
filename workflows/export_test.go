package workflows

import "testing"

// AlwaysInGroups has groups carry the tasks of all runs in a test.
func AlwaysInGroups(t *testing.T) {
	before := groupsAbove
	groupsAbove = 0
	t.Cleanup(func() { groupsAbove = before })
}
