package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// maxTold limits the total size, in bytes, of a stop's messages to all hosts, because a workflow
// task's commands travel in one message of at most 4 MiB.
const maxTold = 2 << 20

// tell sends every host the state of the stop, without waiting for the hosts. An absent host
// receives it when it returns. The numbers in the messages show a host which one is the newest even
// if they arrive out of order.
func (c *hostCalls) tell(ctx workflow.Context, s spec.Stopping) {
	if s.Error != nil && shorten.Size(s)*len(c.hosts) > maxTold {
		short := *s.Error
		short.Traceback = ""
		s.Error = &short
	}
	summary := "the tasks stop gracefully"
	if !s.Stop {
		summary = "the tasks have been notified"
	}
	in := hostapi.TellStoppingInput{Group: c.group(), Stopping: s}
	for _, h := range c.hosts {
		told := call(telling(ctx, h.Queue, summary), hostapi.Host.TellStopping, in)
		workflow.Go(ctx, func(ctx workflow.Context) {
			if _, err := told.get(ctx); err != nil {
				workflow.GetLogger(ctx).Warn("a host was not notified of a graceful stop", "host", h.Name, "error", err)
			}
		})
	}
}

// tellAgain sends it once more, because the activity that carried it may have been closed with the
// last execution.
func (c *hostCalls) tellAgain(ctx workflow.Context) {
	if s := c.standing(); s != nil {
		c.tell(ctx, *s)
	}
}

// standing returns the state of the stop, which hosts receive if they are reserved after a stop or
// a notice. It is nil before the first one.
func (c *hostCalls) standing() *spec.Stopping {
	if s := c.machine.Stopping(); s.Seq > 0 {
		return &s
	}
	return nil
}
