package server

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/retry"
)

const (
	// clockTakes limits the requests for the server's time.
	clockTakes = 4 * time.Second
	// clockPoll is the poll timeout. Servers refuse much shorter ones.
	clockPoll = 10 * time.Second
)

// Clock returns how far the server's clock is ahead of this host's, plus or minus doubt. There is
// no request for the server's time, but the server records when a queue was last polled. So Clock
// polls a queue that is always empty, and then reads when it was polled.
func Clock(ctx context.Context, c client.Client, namespace string) (ahead, doubt time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, clockTakes)
	defer cancel()
	name := "clusterrun-clock-" + uuid.NewString()
	// Use a sticky queue, because the server discards it automatically.
	queue := &taskqueuepb.TaskQueue{Name: name, Kind: enumspb.TASK_QUEUE_KIND_STICKY, NormalName: "clusterrun-clock"}
	poll, stop := context.WithTimeout(context.WithoutCancel(ctx), clockPoll)
	defer stop()
	refused := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := c.WorkflowService().PollWorkflowTaskQueue(poll, &workflowservice.PollWorkflowTaskQueueRequest{Namespace: namespace, TaskQueue: queue, Identity: name})
		refused <- err
	}()
	for wait := (retry.Backoff{First: time.Millisecond, Most: 100 * time.Millisecond}); ; {
		asked, err := c.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: namespace, TaskQueue: queue, TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
		})
		if err != nil {
			return 0, 0, err
		}
		took := time.Since(began)
		for _, p := range asked.GetPollers() {
			if p.GetIdentity() == name {
				return p.GetLastAccessTime().AsTime().Sub(began.Add(took / 2)), took / 2, nil
			}
		}
		select {
		case err := <-refused:
			return 0, 0, fmt.Errorf("the server does not allow polling its queue: %w", err)
		default:
		}
		if err := wait.Sleep(ctx); err != nil {
			return 0, 0, fmt.Errorf("the server does not report the time of the poll: %w", err)
		}
	}
}
