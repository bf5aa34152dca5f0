package closurequeue

import (
	"context"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/workflows/closure"
	"github.com/clusterrun/clusterrun/workflows/markdown"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Server is what is asked of the Temporal server. The SDK's client has it.
type Server interface {
	ExecuteWorkflow(ctx context.Context, options client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error)
	UpdateWorkflow(ctx context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error)
	QueryWorkflow(ctx context.Context, workflowID, runID, queryType string, args ...any) (converter.EncodedValue, error)
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
	GetWorkflowHistory(ctx context.Context, workflowID, runID string, isLongPoll bool, filter enumspb.HistoryEventFilterType) client.HistoryEventIterator
	GetWorkflow(ctx context.Context, workflowID, runID string) client.WorkflowRun
}

// Client sends requests to the queue of a run and reads its history. It has no state;
// its methods may be called at the same time.
type Client struct {
	// Warn is told of a request that has been tried in vain for a while, and why, and is
	// set before the client is used. None: nobody is told.
	Warn func(request string, err error)

	server Server
	run    spec.RunRef
	id     string
}

// NewClient returns a client of the queue of a run, which may not be there. execution of
// run is the first one of the run.
func NewClient(s Server, run spec.RunRef) *Client {
	return &Client{server: s, run: run, id: closure.QueueID(run.WorkflowID, run.RunID)}
}

// ID returns the workflow ID of the queue.
func (c *Client) ID() string { return c.id }

// Options of a queue that is made.
type Options struct {
	// TaskQueue is that of the run's workflow.
	TaskQueue string
	// QueueSize and TransientUnavailable are those of a queue that is made; see
	// [closure.QueueInput].
	QueueSize            int
	TransientUnavailable *int
	// Tasks tells which tasks closures may ask for. nil: any.
	Tasks TaskNames
}

// Open makes the queue if there is none. One that ended with its run stays as it is.
func (c *Client) Open(ctx context.Context, o Options) error {
	_, err := c.server.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: c.id, TaskQueue: o.TaskQueue,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowTaskTimeout:      closure.TaskTimeout,
		StaticSummary:            "closures of run " + markdown.Name(c.run.WorkflowID),
	}, closure.QueueType, closure.QueueInput{Run: c.run, QueueSize: o.QueueSize, TransientUnavailable: o.TransientUnavailable})
	var ended *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &ended) {
		return fmt.Errorf("open the queue of closures of run %s: %w", c.run.WorkflowID, err)
	}
	return nil
}

// Schedule sends closures until the queue has answered, which takes as long as it is
// full. One request of a client after the other keeps their order.
func (c *Client) Schedule(ctx context.Context, r closure.ScheduleRequest) (closure.ScheduleAnswer, error) {
	a, err := update[closure.ScheduleAnswer](ctx, c, closure.UpdateSchedule, r)
	a.Raised = c.whole(ctx, a.Raised)
	return a, err
}

// Join waits until nothing is queued or executing, or has the error of the queue.
func (c *Client) Join(ctx context.Context, r closure.WaitRequest) (closure.WaitAnswer, error) {
	return wait(ctx, c, closure.UpdateJoin, r)
}

// Done reports whether nothing is queued or executing, or has the error of the queue.
func (c *Client) Done(ctx context.Context, r closure.WaitRequest) (closure.WaitAnswer, error) {
	return wait(ctx, c, closure.UpdateDone, r)
}

// CreateResource makes a per-worker resource known.
func (c *Client) CreateResource(ctx context.Context, r closure.ResourceRequest) (closure.ResourceAnswer, error) {
	return update[closure.ResourceAnswer](ctx, c, closure.UpdateCreateResource, r)
}

// ReleaseResources says that nobody needs per-worker resources any more, which the same
// client has created.
func (c *Client) ReleaseResources(ctx context.Context, r closure.ReleaseRequest) (closure.ReleaseAnswer, error) {
	return update[closure.ReleaseAnswer](ctx, c, closure.UpdateReleaseResources, r)
}

// Cancel cancels closures, or all.
func (c *Client) Cancel(ctx context.Context, r closure.CancelRequest) (closure.CancelAnswer, error) {
	return update[closure.CancelAnswer](ctx, c, closure.UpdateCancelClosures, r)
}

// Pause has nothing more be given out, or again.
func (c *Client) Pause(ctx context.Context, r closure.PauseRequest) (closure.QueueStatus, error) {
	return update[closure.QueueStatus](ctx, c, closure.UpdatePauseQueue, r)
}

// executing returns how many closures are being called, as the heartbeats of the leases say.
func executing(activities []*workflowpb.PendingActivityInfo) (n int) {
	for _, a := range activities {
		var beat closure.LeaseBeat
		if a.GetActivityType().GetName() == closure.ActivityRunClosures && decode(a.GetHeartbeatDetails(), &beat) == nil {
			n += beat.Executing
		}
	}
	return n
}

// Status asks the queue how it stands. For one that has ended its result says so:
// nobody may be there any more to answer.
func (c *Client) Status(ctx context.Context) (closure.QueueStatus, error) {
	d, err := c.server.DescribeWorkflowExecution(ctx, c.id, "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return closure.QueueStatus{}, c.noQueue()
	} else if err != nil {
		return closure.QueueStatus{}, err
	}
	if isOpen(d.GetWorkflowExecutionInfo().GetStatus()) {
		var s closure.QueueStatus
		v, err := c.server.QueryWorkflow(ctx, c.id, "", closure.QueryQueue)
		if err == nil {
			err = v.Get(&s)
		}
		had := s.Counts.Executing
		s.Counts.Executing = min(executing(d.GetPendingActivities()), had)
		s.Counts.GivenOut = had - s.Counts.Executing
		return s, err
	}
	var r closure.QueueResult
	if err := c.server.GetWorkflow(ctx, c.id, "").Get(ctx, &r); err != nil {
		return closure.QueueStatus{}, fmt.Errorf("the queue of run %s left no account of its closures: %w", c.run.WorkflowID, err)
	}
	return closure.QueueStatus{State: closure.QueueEnded, Counts: r.Counts, Executions: r.Executions, Workers: []closure.WorkerStatus{}}, nil
}
