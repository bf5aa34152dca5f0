package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/clusterrun/clusterrun/tests/harness"
)

// Runs are found in the Web UI and by the temporal CLI: by their verdict, which is empty before
// they end, and by their hosts.
func TestRunsAreFoundByVerdictAndHost(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.StartWorker(t, "--host-name", "host-b")
	submit := func(id string, args ...string) {
		t.Helper()
		code, _, stderr := f.CLI(t, append([]string{"submit", "--id", id, "--env", f.mark, "--dir", f.dir}, args...)...)
		require.Zero(t, code, stderr)
	}
	submit("good", "--task", "worker=host-a,host-b", "--", "true")
	submit("bad", "--task", "worker=host-b", "--", "false")
	submit("open", "--task", "worker=host-a", "--", "sleep", "1000")
	submit("unplaced", "--task", "worker=host-c", "--", "true")

	found := func(query string) (ids []string) {
		list, err := f.client.ListWorkflow(context.Background(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		require.NoError(t, err)
		for _, e := range list.GetExecutions() {
			ids = append(ids, e.GetExecution().GetWorkflowId())
		}
		return ids
	}
	for query, want := range map[string][]string{
		`ClusterRunVerdict = "succeeded"`: {"good"},
		`ClusterRunVerdict = "failed"`:    {"bad"},
		`ClusterRunVerdict = "none"`:      {"open", "unplaced"},
		`ClusterRunHost = "host-a"`:       {"good", "open"},
		`ClusterRunHost = "host-b"`:       {"good", "bad"},
		`ClusterRunHost = "none"`:         {"unplaced"},
	} {
		harness.Eventually(t, fmt.Sprint(query, " finds ", want), func() bool {
			return assert.ObjectsAreEqual(len(want), len(found(query))) && assert.Subset(new(testing.T), found(query), want)
		})
	}

	for _, id := range []string{"open", "unplaced"} {
		code, _, stderr := f.CLI(t, "stop", id)
		require.Zero(t, code, stderr)
	}
	harness.Eventually(t, "two runs were cancelled", func() bool { return len(found(`ClusterRunVerdict = "cancelled"`)) == 2 })
}
