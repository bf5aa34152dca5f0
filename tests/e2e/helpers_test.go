package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// takesLong skips a test of `make test-long`: others resemble it, or test its rule alone.
func takesLong(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("make test-long runs it")
	}
}

func touch(t *testing.T, f *fixture, name string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(f.dir, name), nil, 0o644))
}

// state asks the run where a task is.
func (f *fixture) state(run client.WorkflowRun, name string) spec.TaskState {
	f.t.Helper()
	v, err := f.client.QueryWorkflow(context.Background(), run.GetID(), run.GetRunID(), spec.QueryStatus)
	require.NoError(f.t, err)
	var s spec.Status
	require.NoError(f.t, v.Get(&s))
	for _, t := range s.Tasks {
		if t.Name == name {
			return t.State
		}
	}
	return ""
}

func (f *fixture) pending(run client.WorkflowRun) []*workflowpb.PendingActivityInfo {
	f.t.Helper()
	d, err := f.client.DescribeWorkflowExecution(context.Background(), run.GetID(), run.GetRunID())
	require.NoError(f.t, err)
	return d.GetPendingActivities()
}

func after(s, sep string) string {
	_, rest, _ := strings.Cut(s, sep)
	return rest
}
