package closurequeue

import (
	"context"
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

// Client sends requests to a run's queue, for this program or, with [Answer], for other programs. It
// is stateless. Its methods may be called concurrently, but its fields must be set first.
type Client struct {
	// Warn, if not nil, is called if a request keeps failing.
	Warn func(err error)
	// TaskQueue is the task queue of the run's workflow, used if a queue is created.
	TaskQueue string
	// Opening returns the input with which [Client.Sync] creates a queue.
	Opening func() (closure.QueueInput, error)

	server client.Client
	run    spec.RunRef
	id     string
}

// NewClient returns a client of a run's queue, which need not exist. The execution in run must be
// the run's first one.
func NewClient(s client.Client, run spec.RunRef) *Client {
	return &Client{server: s, run: run, id: closure.QueueID(run.WorkflowID, run.RunID)}
}

// ID returns the queue's workflow ID.
func (c *Client) ID() string { return c.id }

// Tell reports to the queue which of a host's tasks serve. It creates the queue, with the given
// input, if there is none. An ended queue does not need a report.
func (c *Client) Tell(ctx context.Context, in closure.QueueInput, m closure.ServingMessage) error {
	_, err := c.server.SignalWithStartWorkflow(ctx, c.id, closure.SignalServing, m, c.options(), closure.QueueType, in)
	if hasEnded(err) {
		return nil
	}
	return err
}

func (c *Client) options() client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: c.id, TaskQueue: c.TaskQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowTaskTimeout:   closure.TaskTimeout,
		StaticSummary:         "closures of run " + markdown.Name(c.run.WorkflowID),
	}
}

func hasEnded(err error) bool {
	_, ended := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err)
	return ended
}

// Status returns the queue's status. It needs a worker.
func (c *Client) Status(ctx context.Context) (s closure.QueueStatus, err error) {
	v, err := c.server.QueryWorkflow(ctx, c.id, "", closure.QueryQueue)
	if err == nil {
		err = v.Get(&s)
	}
	return s, err
}
