package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Tasks survive when PostgreSQL and Temporal's own server are killed, and then their run finishes
// as usual.
func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, harness.StartTemporal(t))
	_, said, _ := f.CLI(t, "doctor")
	assert.Contains(t, said, "all search attributes of runs are registered")

	run := f.start(&spec.RunSpec{Tasks: []spec.TaskGroup{group("worker", 2, until)}})
	pids := []int{f.startedOnce(0), f.startedOnce(1)}
	f.Database.Kill()
	f.Database.Restart()
	f.Kill()
	f.Restart()
	touch(t, f, "go")
	r := f.result(run)
	require.Equal(t, spec.VerdictSucceeded, r.Verdict, r.Message)
	for i, pid := range pids {
		assert.Equal(t, pid, f.startedOnce(i))
		assert.Equal(t, `"done"`, string(r.Tasks[i].Value))
	}
}
