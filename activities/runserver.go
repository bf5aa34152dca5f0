package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/supervisor"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// Runs are the runs themselves, as those who serve their tasks ask them.
type Runs interface {
	// Update makes a request to a run, which is named by its first execution, and reads
	// its answer into answer. A [RefusedError] is final; after any other error it may be
	// made again.
	Update(ctx context.Context, run supervisor.RunKey, q RunUpdate, answer any) error
	// Tasks has the names of the run's tasks, also of those outside its spec.
	Tasks(ctx context.Context, run supervisor.RunKey) ([]string, error)
}

// RunUpdate is a request to a run. With the same ID it is the same request, and is
// answered the same.
type RunUpdate struct {
	ID, Name string
	Input    any
}

// RefusedError says why a run, or its server, refused a request.
type RefusedError struct{ why string }

func (e *RefusedError) Error() string { return e.why }

// RunServer asks runs on the Temporal server. Until it is connected that counts as
// away.
type RunServer struct{ connection }

var _ Runs = (*RunServer)(nil)

// Update implements [Runs]. It reaches the execution that has the run now. The server
// refuses it where the workflow ID is another run's by now.
func (s *RunServer) Update(ctx context.Context, run supervisor.RunKey, q RunUpdate, answer any) error {
	c, err := s.connected()
	if err != nil {
		return err
	}
	handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		UpdateID: q.ID, WorkflowID: run.WorkflowID, FirstExecutionRunID: run.RunID,
		UpdateName: q.Name, Args: []any{q.Input},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, answer)
	}
	return refusal(err)
}

// tasksTimeout bounds the query: with nobody there to answer it would wait for as long
// as it is allowed to.
const tasksTimeout = 3 * time.Second

// Tasks implements [Runs].
func (s *RunServer) Tasks(ctx context.Context, run supervisor.RunKey) ([]string, error) {
	c, err := s.connected()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, tasksTimeout)
	defer cancel()
	d, err := describeRun(ctx, c, run.WorkflowID, run.RunID)
	if err != nil {
		return nil, err
	}
	v, err := c.QueryWorkflow(ctx, run.WorkflowID, d.GetWorkflowExecutionInfo().GetExecution().GetRunId(), spec.QueryStatus)
	if err != nil {
		return nil, err
	}
	var status spec.Status
	if err := v.Get(&status); err != nil {
		return nil, err
	}
	names := make([]string, len(status.Tasks))
	for i, t := range status.Tasks {
		names[i] = t.Name
	}
	return names, nil
}

// refusal tells what another try would not change from what it may.
func refusal(err error) error {
	var (
		application *temporal.ApplicationError
		notFound    *serviceerror.NotFound
		invalid     *serviceerror.InvalidArgument
		denied      *serviceerror.PermissionDenied
		exhausted   *serviceerror.FailedPrecondition
		namespace   *serviceerror.NamespaceNotFound
	)
	switch {
	case errors.As(err, &application) && application.Type() == spec.ErrTryAgain:
		return err
	case errors.As(err, &application):
		return &RefusedError{application.Message()}
	case errors.As(err, &notFound):
		return &RefusedError{"the run has ended"}
	case errors.As(err, &invalid), errors.As(err, &denied), errors.As(err, &exhausted), errors.As(err, &namespace):
		return &RefusedError{"the Temporal server refuses it: " + err.Error()}
	}
	return err
}
