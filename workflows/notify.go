package workflows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/clusterrun/clusterrun/workflows/lifecycle"
	"github.com/clusterrun/clusterrun/workflows/outcome"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// NotifyInput is the input of [Notify].
type NotifyInput struct {
	// Each is the notice for each receiver.
	Each []hostapi.NotifyInput `json:"each"`
	// Queues are the queues of hosts that may send it, the preferred ones first.
	Queues []string `json:"queues"`
}

// Notify sends a notice about a run to its receivers. It outlives the run. It fails if a receiver
// has not taken the notice.
func Notify(ctx workflow.Context, in NotifyInput) error {
	errs := make([]error, len(in.Each))
	all := workflow.NewWaitGroup(ctx)
	for i, each := range in.Each {
		all.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer all.Done()
			errs[i] = send(ctx, in.Queues, each)
		})
	}
	all.Wait(ctx)
	var problems []string
	for i, err := range errs {
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s", receiver(in.Each[i].Notification), reasonOf(err)))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return temporal.NewNonRetryableApplicationError(strings.Join(problems, "; "), spec.ErrNotify, nil)
}

// send sends a notice to one receiver. If a host does not take it up, the next one does.
func send(ctx workflow.Context, queues []string, in hostapi.NotifyInput) (err error) {
	for i, queue := range queues {
		_, err = call(notifying(ctx, queue, i < len(queues)-1, receiver(in.Notification)), hostapi.Host.Notify, in).get(ctx)
		var timeout *temporal.TimeoutError
		if !errors.As(err, &timeout) || timeout.TimeoutType() != enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START {
			return err
		}
	}
	return err
}

// receiver names the receiver of a notification, without its address, which may be a secret.
func receiver(n spec.Notification) string {
	if n.IsWebhook() {
		return "webhook"
	}
	return "command " + n.Command[0]
}

// notifier starts the notifications of a run.
type notifier struct {
	*runState
	// starting are the notifications whose start the server has not confirmed.
	starting []workflow.ChildWorkflowFuture
}

// notify starts a workflow that sends a notice: the run does not wait for it.
func (n *notifier) notify(ctx workflow.Context, a lifecycle.Notify) {
	info := workflow.GetInfo(ctx)
	notice := noticeOf(info.WorkflowExecution.ID, a)
	notice.ID = spec.NoticeID(info.WorkflowExecution.ID, n.began, a.Number)
	notice.Event, notice.Time = a.On, workflow.Now(ctx).UTC()
	notice.Run, notice.Execution, notice.Name = info.WorkflowExecution.ID, n.began, n.spec.Name
	in := NotifyInput{Queues: n.senders()}
	for _, to := range n.spec.Notify {
		if to.Wants(a.On) {
			each := hostapi.NotifyInput{Notice: notice, Notification: to, Dir: n.spec.Dir}
			if n.spec.Signature != nil {
				each.Spec = n.spec
			}
			in.Each = append(in.Each, each)
		}
	}
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:               notice.ID,
		ParentClosePolicy:        enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowExecutionTimeout: notifyTakes + time.Hour,
		StaticSummary:            "notify of: " + string(a.On),
	}), spec.NotifyWorkflowType, in)
	n.starting = append(n.starting, child)
}

// noticeOf returns the text and the fields of a notice about the event.
func noticeOf(run string, a lifecycle.Notify) spec.Notice {
	switch {
	case a.Result != nil:
		return outcome.Ended(run, a.Result)
	case a.Task != nil:
		return outcome.TaskRestarts(run, *a.Task)
	case a.Group != nil:
		return outcome.GroupRestarts(run, *a.Group)
	}
	return outcome.Hangs(run, a.Silent, a.Findings)
}

// maxSenders bounds the hosts of a run that are asked one after the other to send a notice.
const maxSenders = 3

// senders returns the queues of the hosts that may send a notice: the first hosts of the run, and
// then any host.
func (n *notifier) senders() []string {
	var queues []string
	for _, h := range n.hosts {
		if h.queue != "" && !n.absent[h.queue] && !n.lost[h.queue] && len(queues) < maxSenders {
			queues = append(queues, h.queue)
		}
	}
	if any := spec.HostsQueue(n.queue); !slices.Contains(queues, any) {
		queues = append(queues, any)
	}
	return queues
}

// await waits until the server has started the notifications: one that the run has only asked for
// would be lost at its end.
func (n *notifier) await(ctx workflow.Context) {
	for _, child := range n.starting {
		if err := child.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("a notification was not started", "error", err)
		}
	}
	n.starting = nil
}
