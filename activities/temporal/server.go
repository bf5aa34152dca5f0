package temporal

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// errNotConnected is tried again like any outage.
var errNotConnected = errors.New("there is no connection to the Temporal server yet")

// Server is the Temporal server, for those that are made before there is a connection:
// tasks are served from the first moment. Until then it counts as away.
type Server struct {
	client atomic.Pointer[client.Client]
}

// Connect gives it the connection, which is closed with it.
func (s *Server) Connect(c client.Client) { s.client.Store(&c) }

// Close closes the connection, if there is one.
func (s *Server) Close() {
	if c, err := s.connected(); err == nil {
		c.Close()
	}
}

func (s *Server) connected() (client.Client, error) {
	if c := s.client.Load(); c != nil {
		return *c, nil
	}
	return nil, errNotConnected
}

// RecordActivityHeartbeat records a heartbeat with the client.
func (s *Server) RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error {
	c, err := s.connected()
	if err != nil {
		return err
	}
	return c.RecordActivityHeartbeat(ctx, taskToken, details...)
}

// tell sends a signal to a workflow, which begins with it where there is none. An ID that
// was closed is never started again, so that a signal that comes too late is refused, with
// the error closed, by the server and not by a race.
func (s *Server) tell(ctx context.Context, signal string, message any, o client.StartWorkflowOptions, workflow string, in any, closed error) error {
	c, err := s.connected()
	if err != nil {
		return err
	}
	o.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	_, err = c.SignalWithStartWorkflow(ctx, o.ID, signal, message, o, workflow, in)
	var ended *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &ended) {
		return closed
	}
	return err
}

// identityPatience is how long a server may take to say who it is.
const identityPatience = 5 * time.Second

// Identity returns what tells the server from others, and its database from the next one:
// the ID of the namespace, which is made with it. The ID of the cluster does not, for a
// namespace that fails over to another cluster takes its runs along. It is empty where the
// server does not tell this client.
func (s *Server) Identity(ctx context.Context, namespace string) (string, error) {
	c, err := s.connected()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, identityPatience)
	defer cancel()
	d, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	var denied *serviceerror.PermissionDenied
	if errors.As(err, &denied) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("ask the server who it is: %w", err)
	}
	return d.GetNamespaceInfo().GetId(), nil
}
