package lifecycle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The snapshot of a run with a thousand tasks and long messages keeps only what fits.
func TestSnapshotsAreBounded(t *testing.T) {
	for _, words := range []int{10, 1024} {
		s := (&spec.RunSpec{Command: []string{"x"}, RestartScope: spec.RestartScopeGroup, Tasks: []spec.TaskGroup{{Type: "worker", Count: new(1000)}}}).WithDefaults()
		m := New(s, s.TaskList())
		m.Step(Begin{})
		for _, task := range s.TaskList() {
			m.Step(TaskEnded{Task: task.Name(), Exit: &spec.Exit{
				ExitCode: 1, Cause: spec.CauseOrigin, Message: strings.Repeat("w", words),
				LogDir: "/home/ann/.local/state/clusterrun/logs/iris/ee3875a0e2c9/attempt_0/0",
			}})
		}
		snapshot := m.Snapshot()
		require.LessOrEqual(t, sizeOf(snapshot), maxSnapshot)
		assert.NotEmpty(t, snapshot.Exits["worker-999"])
		assert.Equal(t, 1, snapshot.Generation)
		assert.Equal(t, 1, snapshot.Counted)
	}
}
