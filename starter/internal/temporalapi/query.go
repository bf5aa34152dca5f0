package temporalapi

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
)

const (
	// QueryTimeout limits a query. If no worker answers, a query takes all of it.
	QueryTimeout = 3 * time.Second
	// QueryTries is how often a query is sent if it is not answered in time. The server may have
	// given the first one to a frozen host worker; another host worker takes the next.
	QueryTries = 2
	// startTimeout limits a query to an execution that starts late. After a short execution, the
	// server delays the next one's first task, and immediately refuses a query that would time out
	// before.
	startTimeout = 15 * time.Second
)

// Query sends a query to a workflow.
func Query(ctx context.Context, c client.Client, id, execution, query string) (v converter.EncodedValue, err error) {
	timeout := QueryTimeout
	for range QueryTries {
		trying, cancel := context.WithTimeout(ctx, timeout)
		v, err = c.QueryWorkflow(trying, id, execution, query)
		cancel()
		switch {
		case servererror.IsMoving(err):
			timeout = startTimeout
		case !errors.Is(err, context.DeadlineExceeded) && !isLate(err) || ctx.Err() != nil:
			return v, err
		}
	}
	return v, err
}

func isLate(err error) bool {
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return late
}
