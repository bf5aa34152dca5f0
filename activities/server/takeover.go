package server

import (
	"context"
	"errors"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/spec/hostapi"
)

// Taker is a process that continues an earlier process of its host worker.
type Taker struct {
	// Identity is this process's name on the server, and Host and Queue belong to the host worker.
	Identity, Host, Queue string
	// Why is the error that fails the earlier process's attempts. The server retries it.
	Why error
}

// TakeOver fails the attempts at a run's tasks that an earlier process holds, so that the server
// offers the tasks again. Otherwise the server would wait for heartbeats of a process that has
// exited.
func (s *Server) TakeOver(ctx context.Context, run runkey.Run, by Taker) error {
	d, err := s.DescribeRun(ctx, run.WorkflowID, run.RunID)
	if servererror.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	errs := []error{s.takeOver(ctx, run.Namespace, d, by)}
	for _, c := range d.GetPendingChildren() {
		if c.GetWorkflowTypeName() != spec.GroupWorkflowType || spec.HostOfGroup(c.GetWorkflowId()) != by.Host || c.GetRunId() == "" {
			continue
		}
		group, err := s.DescribeRun(ctx, c.GetWorkflowId(), c.GetRunId())
		if err == nil {
			err = s.takeOver(ctx, run.Namespace, group, by)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (s *Server) takeOver(ctx context.Context, namespace string, d *workflowservice.DescribeWorkflowExecutionResponse, by Taker) error {
	c, err := s.connected()
	if err != nil {
		return err
	}
	e := d.GetWorkflowExecutionInfo().GetExecution()
	// The earlier process may have cached the run's history.
	_, err = c.WorkflowService().ResetStickyTaskQueue(ctx, &workflowservice.ResetStickyTaskQueueRequest{Namespace: namespace, Execution: e})
	errs := []error{unlessNotFound(err)}
	for _, a := range d.GetPendingActivities() {
		if a.GetActivityType().GetName() != hostapi.Name(hostapi.Host.RunTask) || a.GetState() != enumspb.PENDING_ACTIVITY_STATE_STARTED ||
			a.GetActivityOptions().GetTaskQueue().GetName() != by.Queue || a.GetLastWorkerIdentity() == by.Identity {
			continue
		}
		err := c.CompleteActivityByID(ctx, namespace, e.GetWorkflowId(), e.GetRunId(), a.GetActivityId(), nil, by.Why)
		errs = append(errs, unlessNotFound(err))
	}
	return errors.Join(errs...)
}

func unlessNotFound(err error) error {
	if servererror.IsNotFound(err) {
		return nil // the attempt has ended since
	}
	return err
}
