package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/testsuite"

	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// detailsOf returns the workflow details that the Web UI shows.
func detailsOf(t *testing.T, w *testsuite.TestWorkflowEnvironment) string {
	t.Helper()
	v := must.Get(w.QueryWorkflow("__temporal_workflow_metadata"))(t)
	var m sdkpb.WorkflowMetadata
	require.NoError(t, v.Get(&m))
	return m.GetCurrentDetails()
}

// Strings from programs and users are shown unchanged: the Web UI interprets details as Markdown.
func TestDetailsFenceWhatUsersSay(t *testing.T) {
	const traceback = "  File \"<stdin>\", line 1, in <module>\n```\n# x\n\x1b[31m__init__"

	t.Run("a run", func(t *testing.T) {
		w := newWorld(t)
		w.hosts = []string{"__a|b__"}
		w.SetContinueAsNewSuggested(false)
		w.OnActivity("RunTask", mock.Anything, mock.Anything).Return(
			func(context.Context, hostapi.RunTaskInput) (spec.Exit, error) {
				exit := spec.Exit{ExitCode: 3, Cause: spec.CauseOrigin, PID: 4711, Restart: 2, LogDir: "/logs/a|b_/2", Message: traceback, Reported: true}
				return exit, nil
			})
		require.Error(t, w.start(t, spec.RunSpec{}, nil))
		details := detailsOf(t, w.TestWorkflowEnvironment)
		assert.Contains(t, details, "**ended** · failed\n\n````\nworker-0 reported an error: ")
		assert.Contains(t, details, "in <module>\n")
		assert.Contains(t, details, "␛[31m__init__")
		assert.Contains(t, details, "\n````\n\n\n| task |")
		assert.Contains(t, details, "| `__a¦b__` |")
		assert.Contains(t, details, "\n[barriers across hosts, and closures](/namespaces/default-test-namespace/workflows?query=%60WorkflowId%60+STARTS_WITH+%22")
		assert.Contains(t, details, "|  | 4711 | 2 | 3 | failed by itself |\n\nLogs, on their hosts:\n\n```\n/logs/a|b_/2\n```\n")
	})
	t.Run("a barrier", func(t *testing.T) {
		b := newBarrierTest(t, "__w__-0", "worker-1")
		b.arrive(0, "a", time.Second, "worker-1")
		b.OnActivity(spec.ActivityBarrierCheck, mock.Anything, mock.Anything).Return(unchanged).Maybe()
		b.RegisterDelayedCallback(func() {
			assert.Contains(t, detailsOf(t, b.TestWorkflowEnvironment), "arrived: worker-1 · missing: `__w__-0`")
		}, time.Second/2)
		require.Equal(t, spec.BarrierBroken, b.result().State)
		details := detailsOf(t, b.TestWorkflowEnvironment)
		assert.Regexp(t, "(?s)\n```\n.*missing: __w__-0 .*\n```\n", details)
		assert.Contains(t, details, "Round 4 of run [iris](/namespaces/default-test-namespace/workflows/iris/e)")
	})
}
