package closurequeue

import (
	"context"
	"time"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
)

// withdrawPatience is the longest time for withdrawing an abandoned request. If it fails, as
// when a client is killed, the request stays in the queue, which copes with that.
const withdrawPatience = 2 * time.Second

// wait sends a join or a done request. If ctx ends first, it withdraws the request, which
// would otherwise wait in the queue and begin to drain the queue when there is an error.
func wait(ctx context.Context, c *Client, name string, r closure.WaitRequest) (closure.WaitAnswer, error) {
	a, err := update[closure.WaitAnswer](ctx, c, name, r)
	if err != nil && ctx.Err() != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawPatience)
		defer cancel()
		_, _ = update[closure.WithdrawAnswer](after, c, closure.UpdateWithdraw, r)
	}
	return a, err
}
