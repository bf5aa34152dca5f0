package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter"
)

// An imported run that the server lists as well is listed once, as the server has it.
func TestImportedRunsAreListedOnce(t *testing.T) {
	started := time.Date(2026, 1, 31, 12, 0, 0, 123456789, time.UTC)
	listed := starter.Summary{RunID: "iris", ExecutionID: "1", Started: started.Truncate(time.Microsecond)}
	for _, i := range []struct {
		what     string
		imported starter.Summary
		want     int
	}{
		{"the same execution", starter.Summary{RunID: "iris", ExecutionID: "1", Started: started.Add(time.Second)}, 1},
		{"one before it of the same run", starter.Summary{RunID: "iris", ExecutionID: "0", Started: started}, 1},
		{"an earlier run of that ID", starter.Summary{RunID: "iris", ExecutionID: "0", Started: started.Add(-time.Microsecond)}, 2},
		{"another run", starter.Summary{RunID: "mnist", ExecutionID: "2", Started: started}, 2},
	} {
		i.imported.Imported = true
		runs := latestOf([]starter.Summary{listed}, []starter.Summary{i.imported}, 20)
		assert.Len(t, runs, i.want, i.what)
		assert.Contains(t, runs, listed, i.what)
	}
}
