package starter

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/retry"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// AwaitNotices waits until the notices of the run, which has ended, are sent, or cannot be. It
// returns an error for each that was not. When ctx is done it ends the notices that are left.
func (r *Run) AwaitNotices(ctx context.Context) error {
	var errs []error
	for n := 1; ; n++ {
		id := spec.NoticeID(r.ID, r.ExecutionID, n)
		err := r.client.GetWorkflow(ctx, id, "").Get(ctx, nil)
		for err != nil && !isNotFound(err) && !errors.As(err, new(*temporal.ApplicationError)) && retry.Sleep(ctx, retryEvery) == nil {
			err = r.client.GetWorkflow(ctx, id, "").Get(ctx, nil) // the server was away
		}
		if ctx.Err() != nil {
			err = r.endNotice(context.WithoutCancel(ctx), id)
		}
		var app *temporal.ApplicationError
		switch {
		case isNotFound(err):
			return errors.Join(errs...)
		case errors.As(err, &app):
			errs = append(errs, fmt.Errorf("notice %d was not sent: %s", n, app.Message()))
		case err != nil:
			errs = append(errs, fmt.Errorf("notice %d was not sent in time: %w", n, err))
		}
	}
}

// endNotice ends a notice, and returns the reason why its last try failed. It returns nil if the
// notice was sent.
func (r *Run) endNotice(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, retryEvery*5)
	defer cancel()
	d, err := r.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil || !isOpen(d.GetWorkflowExecutionInfo()) {
		return err
	}
	err = errors.New("no try has been answered")
	for _, a := range d.GetPendingActivities() {
		if text := a.GetLastFailure().GetMessage(); text != "" {
			err = errors.New(text)
		}
	}
	_ = r.client.TerminateWorkflow(ctx, id, "", "the host worker that sends it has ended")
	return err
}
