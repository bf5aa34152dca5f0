package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/stats"
)

// identityPatience limits the wait for the server's answer.
const identityPatience = 5 * time.Second

// Identity returns an ID that identifies a server and its database. It is the ID of the namespace,
// which is created with the database. The cluster's ID is unsuitable, because a namespace that
// fails over to another cluster keeps its runs. Identity returns an empty ID if the server does not
// permit the request.
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

// Identity returns the server's identity; see [Identity].
func (s *Server) Identity(ctx context.Context, namespace string) (string, error) {
	c, err := s.connected()
	if err != nil {
		return "", err
	}
	return Identity(ctx, c, namespace)
}

// KnownIdentity is like Identity, but sends at most one request per connection.
func (s *Server) KnownIdentity(ctx context.Context, namespace string) (string, error) {
	return s.known.identity(namespace, func() (string, error) { return s.Identity(ctx, namespace) })
}

// Known is a connection's stats handler. It caches the server's identity, which cannot change until
// the client reconnects.
type Known struct {
	mu          sync.Mutex
	ids         map[string]string // by namespace
	connections int
}

func (k *Known) identity(namespace string, ask func() (string, error)) (string, error) {
	k.mu.Lock()
	id, ok := k.ids[namespace]
	before := k.connections
	k.mu.Unlock()
	if ok {
		return id, nil
	}
	id, err := ask()
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil && k.connections == before {
		k.ids = map[string]string{namespace: id}
	}
	return id, err
}

// TagConn forgets the identity, because the connection is new.
func (k *Known) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ids = nil
	k.connections++
	return ctx
}

// TagRPC, HandleRPC and HandleConn do nothing.
func (*Known) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (*Known) HandleRPC(context.Context, stats.RPCStats)                       {}
func (*Known) HandleConn(context.Context, stats.ConnStats)                     {}
