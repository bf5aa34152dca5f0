package drill

import (
	"context"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// pulseEvery is the interval between requests to the server.
const pulseEvery = 200 * time.Millisecond

// pulse polls the server. On a slow machine, hosts lose contact with the server although the
// drill does not cut them off.
type pulse struct {
	answered, longest atomic.Int64 // the time of the last answer, and the longest time without one
}

// begin resets the measurement.
func (p *pulse) begin() {
	p.answered.Store(time.Now().UnixNano())
	p.longest.Store(0)
}

// gap returns the longest time without an answer.
func (p *pulse) gap() time.Duration {
	return time.Duration(max(p.longest.Load(), time.Now().UnixNano()-p.answered.Load()))
}

// keep polls the server until ctx is done.
func (p *pulse) keep(ctx context.Context, c client.Client) {
	for ; ctx.Err() == nil; time.Sleep(pulseEvery) {
		if _, err := c.DescribeWorkflowExecution(ctx, spec.FleetID(spec.TaskQueue), ""); err != nil {
			continue // it is down
		}
		p.longest.Store(int64(p.gap()))
		p.answered.Store(time.Now().UnixNano())
	}
}
