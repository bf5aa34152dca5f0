package starter

import (
	"context"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
)

// chain is the sequence of a run's executions. When its history grows long, the workflow continues
// in a new execution. The first execution identifies a chain, and chain finds the latest one.
type chain struct {
	client client.Client
	id     string // the run ID
	first  string // the first execution, or empty for the latest run with that ID

	mu       sync.Mutex
	latestID string // the latest known execution
}

// describe describes the run's latest execution.
func (c *chain) describe(ctx context.Context) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	execution := c.latest()
	for {
		d, err := c.client.DescribeWorkflowExecution(ctx, c.id, execution)
		if isNotFound(err) && execution != "" {
			// Some time after they close, the server deletes executions. The last one records the
			// first.
			last, lastErr := c.client.DescribeWorkflowExecution(ctx, c.id, "")
			if lastErr != nil || last.GetWorkflowExecutionInfo().GetFirstRunId() != c.first {
				return nil, err
			}
			d, err = last, nil
			c.remember(last.GetWorkflowExecutionInfo().GetExecution().GetRunId())
		}
		if err != nil {
			return nil, err
		}
		info := d.GetWorkflowExecutionInfo()
		if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
			return d, nil
		}
		if execution, err = c.next(ctx, info.GetExecution().GetRunId()); err != nil {
			return nil, err
		}
		c.remember(execution)
	}
}

func (c *chain) remember(execution string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.latestID = execution
}

// latest returns the latest known execution.
func (c *chain) latest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.latestID != "" {
		return c.latestID
	}
	return c.first
}

// next returns the execution that continues a closed execution.
func (c *chain) next(ctx context.Context, execution string) (string, error) {
	events := c.client.GetWorkflowHistory(ctx, c.id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return "", err
		}
		if a := event.GetWorkflowExecutionContinuedAsNewEventAttributes(); a != nil {
			return a.GetNewExecutionRunId(), nil
		}
	}
	return "", &NotFoundError{RunID: c.id}
}

// request sends a request to the run's latest execution. If that execution refuses because it is
// closed, request looks for the next one.
func (c *chain) request(ctx context.Context, do func(execution string) error) error {
	until := time.Now().Add(moveTimeout)
	for again := moving; ; {
		execution := c.latest()
		err := do(execution)
		switch {
		case isNotFound(err) && c.goesOnAfter(ctx, execution):
			continue
		case !servererror.IsMoving(err) || time.Now().After(until):
			return err
		}
		if again.Sleep(ctx) != nil {
			return err
		}
	}
}

// moving paces the requests to a run that is about to continue in another execution, which it does
// within moveTimeout.
var moving = retry.Backoff{First: 20 * time.Millisecond, Most: 500 * time.Millisecond}

const moveTimeout = 30 * time.Second

// goesOnAfter reports whether an execution follows the given one.
func (c *chain) goesOnAfter(ctx context.Context, execution string) bool {
	if execution == "" {
		return false
	}
	_, err := c.describe(ctx)
	return err == nil && c.latest() != execution
}

func isNotFound(err error) bool { return servererror.IsNotFound(err) }
