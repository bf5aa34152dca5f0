package devserver

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/server/common/dynamicconfig"
)

// The embedded server has the settings that we recommend for other servers.
func TestSampleDynamicConfigMatchesOurs(t *testing.T) {
	sample, err := os.ReadFile(filepath.Join("..", "temporal", "dynamicconfig.yaml"))
	require.NoError(t, err)
	load := func(text []byte) map[string]any {
		l := dynamicconfig.LoadYamlFile(text)
		require.NoError(t, l.Err())
		require.Empty(t, l.Warnings, "Temporal warns of unknown keys and of wrong types")
		values := map[string]any{}
		for key, v := range l.Map {
			require.Len(t, v, 1, key.String())
			values[key.String()] = v[0].Value
		}
		return values
	}
	ours := map[string]any{}
	for key, v := range tuning() {
		ours[key.String()] = v
	}

	values := load(sample)
	assert.Len(t, values, 7)
	const shift = "history.timerprocessormaxtimeshift"
	assert.NotContains(t, values, shift, "dangerous where there are several hosts, so it is commented out")
	all := load(regexp.MustCompile(`(?m)^# (history\.timerProcessorMaxTimeShift:|  - value: "1ms")$`).ReplaceAll(sample, []byte("$1")))
	require.Contains(t, all, shift)
	parsed, err := time.ParseDuration(all[shift].(string))
	require.NoError(t, err)
	all[shift] = parsed
	for key, v := range all {
		assert.Equal(t, ours[key], v, key)
	}
}

func TestNamespace(t *testing.T) {
	path := testFile(t)
	p := start(t, "--db", path, "--namespace", "mine", "--retention", "48h")
	c := p.client()
	ctx := context.Background()
	ns, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: "mine"})
	require.NoError(t, err)
	assert.Equal(t, 48*time.Hour, ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration())

	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		TaskQueue: testQueue,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword("ClusterRunOwner").ValueSet("me"),
		),
	}, "nobody serves this")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		found, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: `ClusterRunOwner = "me"`,
		})
		return err == nil && len(found.Executions) == 1 && found.Executions[0].Execution.WorkflowId == run.GetID()
	}, patience, 10*time.Millisecond)

	// Another namespace on the same file; the first keeps what it was created with.
	p.kill()
	c = start(t, "--db", path).client()
	for name, retention := range map[string]time.Duration{"mine": 48 * time.Hour, "default": 90 * 24 * time.Hour} {
		ns, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
		require.NoError(t, err, name)
		assert.Equal(t, retention, ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(), name)
	}
}
