package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// OnFleet calls do with a queue's fleet.
func OnFleet(ctx context.Context, a *App, queue string, do func(*starter.Fleet) error) error {
	c, _, err := a.DialExisting(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err = do(starter.GetFleet(c, queue)); err != nil && Unserved(ctx, c, queue) {
		return errors.New(NobodyServes(queue))
	}
	return err
}

func QueueFlag(cmd *cobra.Command, queue *string) {
	cmd.Flags().StringVar(queue, "queue", spec.TaskQueue, "task `QUEUE` of the hosts")
}

// NobodyServes returns the message that no worker serves a queue, with the remedy.
func NobodyServes(queue string) string {
	return fmt.Sprintf("no worker serves the queue %s; start `clusterrun worker` (not with --role host) or `clusterrun dev`", queue)
}

// Unserved reports whether no worker polls a queue. It queries the server several times, because
// the polls of a new worker are recorded with a short delay.
func Unserved(ctx context.Context, c client.Client, queue string) bool {
	for range 5 {
		d, err := c.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		if err != nil || len(d.GetPollers()) > 0 || retry.Sleep(ctx, 200*time.Millisecond) != nil {
			return false
		}
	}
	return true
}
