package closurequeue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

// Client sends requests to the queue of a run, for this program or, by [Client.Answer], for
// others. It keeps nothing. Its methods may be called concurrently, and its fields must be set
// before that.
type Client struct {
	// Warn is called with a request that has failed for a while, and the error.
	Warn func(request string, err error)
	// TaskQueue is the task queue of the run's workflow, for a queue that is created.
	TaskQueue string
	// Opening returns the input with which a program opens the queue.
	Opening func() (closure.QueueInput, error)

	server client.Client
	run    spec.RunRef
	id     string
}

// NewClient returns a client of the queue of a run, which need not exist. The execution in
// run must be the first one of the run.
func NewClient(s client.Client, run spec.RunRef) *Client {
	c := &Client{server: s, run: run, id: closure.QueueID(run.WorkflowID, run.RunID)}
	c.Warn = func(request string, err error) {
		slog.Warn("a request to the call queue keeps failing; retrying", "queue", c.id, "request", request, "error", err)
	}
	return c
}

// ID returns the workflow ID of the queue.
func (c *Client) ID() string { return c.id }

// Open creates the queue if it does not exist. If it exists, all of the input except the run is
// ignored. A queue that ended with its run stays ended.
func (c *Client) Open(ctx context.Context, in closure.QueueInput) error {
	o := c.options()
	o.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	_, err := c.server.ExecuteWorkflow(ctx, o, closure.QueueType, in)
	if err = unlessEnded(err); err != nil {
		return fmt.Errorf("open the call queue of run %s: %w", c.run.WorkflowID, err)
	}
	return nil
}

// Tell reports to the queue which tasks of a host serve. Like Open it creates a queue, with that
// input. A queue that has ended needs no report.
func (c *Client) Tell(ctx context.Context, in closure.QueueInput, m closure.ServingMessage) error {
	_, err := c.server.SignalWithStartWorkflow(ctx, c.id, closure.SignalServing, m, c.options(), closure.QueueType, in)
	return unlessEnded(err)
}

func (c *Client) options() client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: c.id, TaskQueue: c.TaskQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowTaskTimeout:   closure.TaskTimeout,
		StaticSummary:         "closures of run " + markdown.Name(c.run.WorkflowID),
	}
}

func unlessEnded(err error) error {
	if _, ended := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); ended {
		return nil
	}
	return err
}

// Schedule sends closures until the queue has answered, which it does once it has room.
func (c *Client) Schedule(ctx context.Context, r closure.ScheduleRequest) (closure.ScheduleAnswer, error) {
	return update[closure.ScheduleAnswer](ctx, c, closure.UpdateSchedule, r.Client, r.Batch, r)
}

// Join waits until nothing is queued or executing, or the queue has an error.
func (c *Client) Join(ctx context.Context, r closure.WaitRequest) (closure.WaitAnswer, error) {
	return update[closure.WaitAnswer](ctx, c, closure.UpdateJoin, r.Client, r.Call, r)
}

// Take waits for outcomes of the closures of a client.
func (c *Client) Take(ctx context.Context, r closure.TakeRequest) (closure.TakeAnswer, error) {
	return update[closure.TakeAnswer](ctx, c, closure.UpdateTake, r.Client, r.After, r)
}

// Status returns the status of the queue. For a queue that has ended it comes from the result,
// because no worker may be left for a query.
func (c *Client) Status(ctx context.Context) (closure.QueueStatus, error) {
	d, err := c.server.DescribeWorkflowExecution(ctx, c.id, "")
	if servererror.IsNotFound(err) {
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
		return s, err
	}
	var r closure.QueueResult
	if err := c.server.GetWorkflow(ctx, c.id, "").Get(ctx, &r); err != nil {
		return closure.QueueStatus{}, fmt.Errorf("the queue of run %s left no record of its closures: %w", c.run.WorkflowID, err)
	}
	return closure.QueueStatus{State: closure.QueueEnded, Counts: r.Counts, Workers: []closure.WorkerStatus{}}, nil
}
