package closurequeue

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/system/workflowstatus"
	"github.com/clusterrun/clusterrun/activities/tasks/wire"
	"github.com/clusterrun/clusterrun/workflows/closures/closure"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/strictjson"
)

// Queue is a queue that programs ask. It is a [Client], except in tests.
type Queue interface {
	Sync(ctx context.Context, r closure.SyncRequest) (closure.SyncAnswer, error)
}

// Answer answers a program's request to a queue, which is JSON. It waits until ctx is done.
func Answer(ctx context.Context, q Queue, message []byte) (any, *wire.Problem) {
	var in closure.SyncRequest
	err := strictjson.Decode(message, &in)
	if err == nil {
		err = in.Validate()
	}
	var out closure.SyncAnswer
	if err == nil {
		out, err = q.Sync(ctx, in)
	}
	if err != nil {
		return nil, Problem(err)
	}
	return out, nil
}

// Problem converts an error into the problem that a program receives.
func Problem(err error) *wire.Problem {
	if errors.Is(err, ErrRunEnded) {
		return &wire.Problem{Code: wire.CodeOver, Message: err.Error()}
	}
	if refused := wire.Refused(err); refused != nil {
		return refused
	}
	return &wire.Problem{Code: wire.CodeInternal, Message: err.Error()}
}

// tries is the time between a request's retries. After warnAfter tries, which take some seconds, a
// warning follows.
var tries = retry.Backoff{First: 2 * time.Millisecond, Most: 2 * time.Second}

const warnAfter = 12

// ErrRunEnded is returned if a queue's run has ended.
var ErrRunEnded = errors.New("the run has ended; closures can no longer be scheduled")

// Sync sends a program's request to the queue until it is answered, because the server may be
// away, and the execution that received the request may have continued as new. It creates the queue
// if there is none. A request that is resent to the same execution waits for the answer to the
// first one.
func (c *Client) Sync(ctx context.Context, r closure.SyncRequest) (closure.SyncAnswer, error) {
	again, id := tries, rand.Text()
	for n := 1; ; n++ {
		var a closure.SyncAnswer
		h, err := c.server.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: c.id, UpdateID: id, UpdateName: closure.UpdateSync, Args: []any{r}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = h.Get(ctx, &a)
		}
		if err == nil {
			return a, nil
		}
		if final := c.final(ctx, err); final != nil {
			return a, final
		}
		if n == warnAfter && c.Warn != nil {
			c.Warn(err)
		}
		if err := again.Sleep(ctx); err != nil {
			return a, err
		}
	}
}

// final returns an error if a retry would not help; otherwise nil.
func (c *Client) final(ctx context.Context, err error) error {
	if application, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		switch application.Type() {
		case spec.ErrRefused, spec.ErrInvalidRequest:
			return refusedBy(application)
		case closure.ErrQueueEnded:
			return ErrRunEnded
		}
		return nil
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case servererror.IsMoving(err):
		return nil
	case servererror.IsNotFound(err):
		return c.open(ctx)
	case servererror.IsRefused(err):
		return err
	}
	return nil
}

// refusedBy returns the queue's refusal, with the invalid fields.
func refusedBy(e *temporal.ApplicationError) error {
	var invalid spec.InvalidRequestError
	if e.HasDetails() && e.Details(&invalid) == nil && len(invalid.Problems) > 0 {
		return &closure.RefusedError{Reason: &invalid}
	}
	return &closure.RefusedError{Reason: errors.New(e.Message())}
}

// open creates the queue if there was none. A queue is never opened twice. Most errors leave it to
// the next try.
func (c *Client) open(ctx context.Context) error {
	in, err := c.Opening()
	if err != nil {
		return err
	}
	o := c.options()
	o.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	o.WorkflowExecutionErrorWhenAlreadyStarted = true
	_, err = c.server.ExecuteWorkflow(ctx, o, closure.QueueType, in)
	switch {
	case hasEnded(err):
		return ErrRunEnded
	case servererror.IsRefused(err):
		return fmt.Errorf("open the call queue of run %s: %w", c.run.WorkflowID, err)
	}
	return nil
}

// isOpen reports whether a workflow is open, perhaps in another execution.
func isOpen(s enumspb.WorkflowExecutionStatus) bool {
	return workflowstatus.Continues(s)
}
