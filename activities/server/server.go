package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// errNotConnected is retried like any outage.
var errNotConnected = errors.New("no connection to the Temporal server yet")

// Server is the Temporal server, for users created before it is connected, because tasks are
// served from the start. Until then it counts as away.
type Server struct {
	client atomic.Pointer[client.Client]
}

// Connect sets the connection, which [Server.Close] closes.
func (s *Server) Connect(c client.Client) { s.client.Store(&c) }

// Close closes the connection, if any.
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

// RecordActivityHeartbeat sends a heartbeat through the client.
func (s *Server) RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error {
	c, err := s.connected()
	if err != nil {
		return err
	}
	return c.RecordActivityHeartbeat(ctx, taskToken, details...)
}

// identityPatience limits the wait for the server's answer.
const identityPatience = 5 * time.Second

// Identity returns the server's identity; see [Identity].
func (s *Server) Identity(ctx context.Context, namespace string) (string, error) {
	c, err := s.connected()
	if err != nil {
		return "", err
	}
	return Identity(ctx, c, namespace)
}

// Identity returns an ID that identifies a server and its database. It is the ID of the namespace,
// which is created with the database. The cluster's ID is unsuitable, because a namespace that
// fails over to another cluster keeps its runs. It is empty if the server does not permit the
// request.
func Identity(ctx context.Context, c client.Client, namespace string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, identityPatience)
	defer cancel()
	d, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if _, ok := errors.AsType[*serviceerror.PermissionDenied](err); ok {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("ask the server for its identity: %w", err)
	}
	return d.GetNamespaceInfo().GetId(), nil
}
