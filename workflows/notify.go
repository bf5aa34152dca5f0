package workflows

import (
	"errors"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// notifier sends a run's notices.
type notifier struct{ *runState }

// notify sends a notice. The run continues, and waits for the notice before it ends or moves to
// another execution.
func (n *notifier) notify(ctx workflow.Context, a lifecycle.Notify) {
	run := workflow.GetInfo(ctx).WorkflowExecution.ID
	event, notice := spec.NotifyHang, outcome.Hangs(run, a.Silent, a.Findings)
	if a.Result != nil {
		event, notice = spec.NotifyEnd, outcome.Ended(run, a.Result)
	}
	notice.ID = spec.NoticeID(run, n.began, a.Number)
	notice.Event, notice.Time = event, workflow.Now(ctx).UTC()
	notice.Run, notice.Execution, notice.Name = run, n.began, n.spec.Name
	in := hostapi.NotifyInput{Notice: notice, Notification: n.spec.Notify}
	if n.spec.Signature != nil {
		in.Spec = n.spec
	}
	n.sending++
	workflow.Go(ctx, func(ctx workflow.Context) {
		if err := send(ctx, n.senders(), in); err != nil {
			workflow.GetLogger(ctx).Warn("could not send a notification", "event", event, "error", err)
			if a.Result != nil && n.result != nil {
				n.result.NoticeFailed = reasonOf(err)
			}
		}
		n.sending--
		n.events.Send(ctx, request{woken: true})
	})
}

// send sends a notice. If a host does not start sending it, the next host is asked.
func send(ctx workflow.Context, queues []string, in hostapi.NotifyInput) (err error) {
	for i, queue := range queues {
		_, err = call(notifying(ctx, queue, i < len(queues)-1), hostapi.Host.Notify, in).get(ctx)
		var timeout *temporal.TimeoutError
		if !errors.As(err, &timeout) || timeout.TimeoutType() != enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START {
			return err
		}
	}
	return err
}

// senders returns the queues of the hosts that may send a notice: first the run's first host, then
// any host.
func (n *notifier) senders() []string {
	var queues []string
	for _, h := range n.hosts {
		if h.Queue != "" && !n.absent[h.Queue] && !n.lost[h.Queue] {
			queues = append(queues, h.Queue)
			break
		}
	}
	if any := spec.HostsQueue(n.queue); !slices.Contains(queues, any) {
		queues = append(queues, any)
	}
	return queues
}
