package e2e

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"testing"

	"github.com/clusterrun/clusterrun/starter/clustercoordinator"
	"github.com/clusterrun/clusterrun/tests/harness"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// awaitClosed waits until the queue has closed, and returns how it closed.
func awaitClosed(t *testing.T, c client.Client, queue string) enumspb.WorkflowExecutionStatus {
	t.Helper()
	var status enumspb.WorkflowExecutionStatus
	harness.Eventually(t, "the queue of closures has closed", func() bool {
		d := must.Get(c.DescribeWorkflowExecution(t.Context(), queue, ""))(t)
		status = d.GetWorkflowExecutionInfo().GetStatus()
		return d.GetWorkflowExecutionInfo().GetCloseTime() != nil
	})
	return status
}

// If a run finishes while closures are being called and thousands are waiting, no client hangs, all
// get an error, and the queue is not left behind.
func TestTheRunOfClosuresEnds(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.serve(2)
	c := f.coordinator(run)
	f.awaitServing(c, 2)
	const n = 3000
	ctx := bounded(t)
	var values []*clustercoordinator.RemoteValue
	for range n {
		v := must.Get(c.Schedule(ctx, "hold", "never"))(t)
		values = append(values, v)
	}
	require.NoError(t, c.Flush(ctx))
	f.called("hold never", 2)
	joined := make(chan error, 1)
	go func() { joined <- c.Join(ctx) }()
	require.NoError(t, f.client.TerminateWorkflow(t.Context(), run.GetID(), "", "test"))
	assert.ErrorContains(t, <-joined, "ended")
	for _, v := range values {
		_, err := v.JSON(ctx)
		require.ErrorContains(t, err, "ended")
	}
	late, err := c.Schedule(ctx, "square", 2)
	if err == nil { // Schedule may send it later, when the end is known
		_, err = late.JSON(ctx)
	}
	require.ErrorContains(t, err, "ended")
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, awaitClosed(t, f.client, c.QueueID()))
	var result closure.QueueResult
	require.NoError(t, f.client.GetWorkflow(ctx, c.QueueID(), "").Get(ctx, &result))
	assert.EqualValues(t, n, result.Counts.Cancelled)
	assert.Zero(t, result.Counts.Queued+result.Counts.Executing)
}
