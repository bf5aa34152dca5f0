package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// The barriers of a run include the barriers of all its executions: in the list of waiting
// tasks, and later in the trace.
func TestBarriersOfARunThatContinues(t *testing.T) {
	t.Parallel()
	f := fixtureOn(t, harness.StartDevServer(t, "limit.historyCount.suggestContinueAsNew=20"))
	run := f.start(&spec.RunSpec{Barriers: spec.BarriersServer, Tasks: []spec.TaskGroup{group("worker", 2,
		`[ $RANK = 0 ] && echo up > $DIR/up; while [ $RANK = 1 ] && [ ! -e $DIR/go ]; do nap; done; `+harness.Clusterrun(t)+` task barrier epoch`)}})
	f.file("up")
	waits := func() bool {
		code, stdout, _ := f.CLI(t, "status", "--barriers", run.GetID())
		return code == 0 && strings.Contains(stdout, "epoch")
	}
	harness.Eventually(t, "worker-0 waits", waits)
	asked := starter.Get(f.client, run.GetID(), run.GetRunID())
	for len(executionsOf(t, f, run.GetID(), run.GetRunID())) == 1 {
		_, err := starter.Ask(t.Context(), asked, spec.UpdateSignalTask, spec.SignalRequest{Tasks: []string{"worker-0"}, Signal: "SIGCONT"})
		require.NoError(t, err)
	}
	harness.Eventually(t, "it still does", waits)
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, "go"), nil, 0o600))
	result, err := asked.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, spec.VerdictSucceeded, result.Verdict)
	harness.Eventually(t, "the server lists the round as closed", func() bool {
		code, stdout, stderr := f.CLI(t, "export", "--format", "otlp", run.GetID())
		assert.Zero(t, code, stderr)
		return strings.Contains(stdout, `"name": "barrier epoch"`)
	})
}
