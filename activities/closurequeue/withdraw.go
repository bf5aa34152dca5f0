package closurequeue

import (
	"context"
	"time"

	"github.com/clusterrun/clusterrun/workflows/closure"
)

// withdrawPatience is how long a request may take to be taken back that nobody waits for
// any more. Where that does not succeed, as with a client that is killed, the request
// stays in the queue, and the queue copes with that.
const withdrawPatience = 2 * time.Second

// wait sends a join or a done. When ctx ends first, the request is taken back: it would
// wait in the queue, and begin to drain it when there is an error.
func wait(ctx context.Context, c *Client, name string, r closure.WaitRequest) (closure.WaitAnswer, error) {
	a, err := update[closure.WaitAnswer](ctx, c, name, r)
	if err != nil && ctx.Err() != nil {
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawPatience)
		defer cancel()
		_, _ = update[closure.WithdrawAnswer](after, c, closure.UpdateWithdraw, r)
	}
	a.Raised = c.whole(ctx, a.Raised)
	return a, err
}
