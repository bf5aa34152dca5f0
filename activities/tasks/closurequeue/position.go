package closurequeue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Position is a place in the history of a queue: after an event of an execution.
type Position struct {
	// Execution is the Temporal run ID.
	Execution string
	Event     int64
}

// String returns p in the format of [ParsePosition].
func (p Position) String() string { return p.Execution + ":" + strconv.FormatInt(p.Event, 10) }

// ParsePosition parses a position.
func ParsePosition(s string) (Position, error) {
	execution, event, found := strings.Cut(s, ":")
	n, err := strconv.ParseInt(event, 10, 64)
	if !found || execution == "" || err != nil || n < 0 {
		return Position{}, fmt.Errorf("%.60q is not a position in the history of a queue; use one that the queue returned", s)
	}
	return Position{execution, n}, nil
}

// Here returns the end of the history. A closure that is scheduled after this call ends after
// it.
func (c *Client) Here(ctx context.Context) (Position, error) {
	d, err := c.server.DescribeWorkflowExecution(ctx, c.id, "")
	if err != nil {
		return Position{}, err
	}
	info := d.GetWorkflowExecutionInfo()
	return Position{info.GetExecution().GetRunId(), info.GetHistoryLength()}, nil
}
