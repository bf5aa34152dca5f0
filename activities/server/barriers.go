package server

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/clusterrun/clusterrun/activities/system/servererror"
	"github.com/clusterrun/clusterrun/activities/tasks/barriers"
	"github.com/clusterrun/clusterrun/workflows/spec"
	"github.com/clusterrun/clusterrun/workflows/text/markdown"
)

// maxBarrierRound limits how long a round can be open. It closes rounds that were abandoned because
// their hosts were killed, together with the queue's only workers.
const maxBarrierRound = 30 * 24 * time.Hour

// Barriers keeps the rounds of barriers as workflows on the Temporal server.
type Barriers struct {
	server *Server
	queue  string
}

// NewBarriers returns rounds with workflows on the given task queue.
func NewBarriers(s *Server, queue string) *Barriers { return &Barriers{server: s, queue: queue} }

var _ barriers.Server = (*Barriers)(nil)

// Tell implements [barriers.Server]. A workflow ID that was closed is never used again, so the
// server reliably rejects a late signal.
func (s *Barriers) Tell(ctx context.Context, in spec.BarrierInput, m spec.BarrierMessage) error {
	c, err := s.server.connected()
	if err != nil {
		return err
	}
	id := spec.BarrierID(in.Run, in.Name, in.Round)
	_, err = c.SignalWithStartWorkflow(ctx, id, spec.SignalArrive, m, client.StartWorkflowOptions{
		ID: id, TaskQueue: s.queue,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionTimeout: maxBarrierRound,
		WorkflowTaskTimeout:      spec.WorkflowTaskTimeout,
		StaticSummary:            "barrier " + markdown.Name(in.Name),
	}, spec.BarrierWorkflowType, in)
	if _, ended := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); ended {
		return barriers.ErrClosed
	}
	return final(err)
}

// Withdraw implements [barriers.Server].
func (s *Barriers) Withdraw(ctx context.Context, id string, m spec.BarrierMessage) error {
	c, err := s.server.connected()
	if err != nil {
		return err
	}
	return final(gone(c.SignalWorkflow(ctx, id, "", spec.SignalArrive, m)))
}

// Result implements [barriers.Server]. The SDK's Get uses long polls, and hides short outages.
func (s *Barriers) Result(ctx context.Context, id string) (spec.BarrierResult, error) {
	var r spec.BarrierResult
	c, err := s.server.connected()
	if err != nil {
		return r, err
	}
	err = c.GetWorkflow(ctx, id, "").Get(ctx, &r)
	if ended, ok := errors.AsType[*temporal.WorkflowExecutionError](err); ok {
		// There is no result, so no arrivals count.
		return spec.BarrierResult{State: spec.BarrierBroken, Why: spec.BarrierCancelled, Message: "the barrier was ended: " + ended.Unwrap().Error()}, nil
	}
	return r, gone(err)
}

// Status implements [barriers.Server].
func (s *Barriers) Status(ctx context.Context, id string, of []string) (spec.BarrierStatus, error) {
	var status spec.BarrierStatus
	c, err := s.server.connected()
	if err != nil {
		return status, err
	}
	v, err := c.QueryWorkflow(ctx, id, "", spec.QueryBarrier, of)
	if err == nil {
		err = v.Get(&status)
	}
	return status, gone(err)
}

// End implements [barriers.Server].
func (s *Barriers) End(ctx context.Context, id, why string) error {
	c, err := s.server.connected()
	if err != nil {
		return err
	}
	return gone(c.TerminateWorkflow(ctx, id, "", why))
}

// gone returns [barriers.ErrClosed] if the workflow is closed or never existed.
func gone(err error) error {
	if servererror.IsNotFound(err) {
		return barriers.ErrClosed
	}
	return err
}

// final marks errors that a retry would not fix.
func final(err error) error {
	if servererror.IsRefused(err) {
		return &barriers.RefusedError{Err: err}
	}
	return err
}
