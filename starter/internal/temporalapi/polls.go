package temporalapi

import (
	"context"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"
)

// PolledSince reports whether a worker has polled the queue for workflow tasks since a time on
// the server's clock. A host worker polls again after each task, and receives waiting tasks. So
// a host worker without a poll since that time is gone, although the server lists it for some
// minutes.
func PolledSince(ctx context.Context, c client.Client, queue string, since time.Time) (bool, error) {
	d, err := c.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(d.GetPollers(), func(p *taskqueuepb.PollerInfo) bool {
		return p.GetLastAccessTime().AsTime().After(since)
	}), nil
}
