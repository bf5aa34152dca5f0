package closurequeue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

// Client sends requests to a run's queue, for this program or, with [Client.Answer], for other
// programs. It is stateless. Its methods may be called concurrently, but its fields must be set
// first.
type Client struct {
	// Warn is called with a request that keeps failing, and the error.
	Warn func(request string, err error)
	// TaskQueue is the task queue of the run's workflow, used if a queue is created.
	TaskQueue string
	// Opening returns a program's input to open the queue.
	Opening func() (closure.QueueInput, error)

	server client.Client
	run    spec.RunRef
	id     string
}

// NewClient returns a client of a run's queue, which need not exist. The execution in run must be
// the run's first one.
func NewClient(s client.Client, run spec.RunRef) *Client {
	c := &Client{server: s, run: run, id: closure.QueueID(run.WorkflowID, run.RunID)}
	c.Warn = func(request string, err error) {
		slog.Warn("a request to the call queue keeps failing; retrying", "queue", c.id, "request", request, "error", err)
	}
	return c
}

// ID returns the queue's workflow ID.
func (c *Client) ID() string { return c.id }

// Open creates the queue if it does not exist. Otherwise all of the input except the run is
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

// Tell reports to the queue which of a host's tasks serve. Like Open, it creates a queue with the
// given input. An ended queue does not need a report.
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

// Schedule sends closures until the queue has answered, which requires capacity.
func (c *Client) Schedule(ctx context.Context, r closure.ScheduleRequest) (closure.ScheduleAnswer, error) {
	return update[closure.ScheduleAnswer](ctx, c, closure.UpdateSchedule, r.Client, r.Batch, r)
}

// Join waits until no closure is queued or executing, or the queue has an error.
func (c *Client) Join(ctx context.Context, r closure.WaitRequest) (closure.WaitAnswer, error) {
	return update[closure.WaitAnswer](ctx, c, closure.UpdateJoin, r.Client, r.Call, r)
}

// Take waits until closures of a client are done. Each call is a separate request, because a
// schedule may have given an empty answer to an earlier call with the same After.
func (c *Client) Take(ctx context.Context, r closure.TakeRequest) (closure.TakeAnswer, error) {
	return update[closure.TakeAnswer](ctx, c, closure.UpdateTake, r.Client, rand.Uint64(), r) //nolint:gosec // not a secret
}

// Status returns the queue's status. An ended queue's status comes from its result, because no
// worker may be left for a query.
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
